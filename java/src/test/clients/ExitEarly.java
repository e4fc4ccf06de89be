import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.hybridnet.NDArray;
import org.hybridnet.Operator;

/** Ends the process while products are queued: {@code java ExitEarly.java WAY}, "return", "exit" or "halt". */
public final class ExitEarly {
  private ExitEarly() {}

  public static void main(String[] words) {
    NDArray one = Operator.invoke("_ones", Map.of("shape", "(500, 500)"))[0];
    List<NDArray> products = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      products.add(Operator.invoke("dot", Map.of(), one, one)[0]);
    }
    System.out.println("queued");
    switch (words[0]) {
      case "exit" -> System.exit(0);
      case "halt" -> Runtime.getRuntime().halt(0);
      default -> {}
    }
  }
}
