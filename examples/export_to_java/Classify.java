import java.nio.file.Path;
import java.util.Map;
import org.hybridnet.Model;
import org.hybridnet.NDArray;

/**
 * Runs an exported classifier without Python and compares its outputs with Python's: {@code Classify
 * PREFIX CHECK.params}, where the file contains "data" (images) and "scores" (Python's outputs for them).
 */
public class Classify {
  public static void main(String[] arguments) {
    if (arguments.length != 2) {
      System.err.println("usage: Classify PREFIX CHECK.params");
      System.exit(2);
    }
    Map<String, NDArray> check = NDArray.load(Path.of(arguments[1]));
    try (Model model = Model.load(arguments[0]);
        NDArray scores = model.predict(check.get("data"))[0]) {
      int count = (int) scores.shape()[0];
      float[] got = scores.toFloats();
      float[] expected = check.get("scores").toFloats();
      int agreeing = 0;
      float difference = 0;
      for (int i = 0; i < count; i++) {
        agreeing += best(got, i, count) == best(expected, i, count) ? 1 : 0;
      }
      for (int i = 0; i < got.length; i++) {
        difference = Math.max(difference, Math.abs(got[i] - expected[i]));
      }
      System.out.printf("Java agrees: %d of %d predictions, max difference %.1e%n", agreeing, count, difference);
      System.exit(agreeing == count && difference < 1e-5 ? 0 : 1);
    }
  }

  /** The class with the highest score in row i of count rows. */
  private static int best(float[] scores, int i, int count) {
    int classes = scores.length / count;
    int best = 0;
    for (int c = 1; c < classes; c++) {
      if (scores[i * classes + c] > scores[i * classes + best]) {
        best = c;
      }
    }
    return best;
  }
}
