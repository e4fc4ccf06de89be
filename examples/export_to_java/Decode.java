import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.hybridnet.Model;
import org.hybridnet.NDArray;

/**
 * Runs the beam search of examples/beam_search_while.py, a while_loop around a recurrent net, and
 * compares its words with Python's: {@code Decode PREFIX CHECK.params}, where the file holds
 * "chances", "state" (the inputs) and "words" (Python's output for them).
 */
public class Decode {
  private static final String LETTERS = ".IVXL";

  public static void main(String[] arguments) {
    if (arguments.length != 2) {
      System.err.println("usage: Decode PREFIX CHECK.params");
      System.exit(2);
    }
    Map<String, NDArray> check = NDArray.load(Path.of(arguments[1]));
    try (Model search = Model.load(arguments[0])) {
      NDArray[] outputs = search.predict(check.get("chances"), check.get("state"));
      float[] words = outputs[0].toFloats();
      float[] chances = outputs[1].toFloats();
      int length = (int) outputs[0].shape()[1];
      for (int i = 0; i < 5; i++) {
        System.out.printf("%-10s %8.4f%n", word(words, i, length), chances[i]);
      }
      boolean equal = Arrays.equals(words, check.get("words").toFloats());
      System.out.println(equal ? "Java finds Python's words" : "Java finds other words than Python");
      System.exit(equal ? 0 : 1);
    }
  }

  private static String word(float[] words, int row, int length) {
    StringBuilder text = new StringBuilder();
    for (int i = row * length; i < (row + 1) * length && words[i] != 0; i++) {
      text.append(LETTERS.charAt((int) words[i]));
    }
    return text.toString();
  }
}
