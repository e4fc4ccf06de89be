import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.concurrent.Executors;
import org.hybridnet.HybridNetError;
import org.hybridnet.Model;

/**
 * Predictions over HTTP: {@code Serve PREFIX PORT SIZE...}, the sizes being those of one example. {@code
 * POST /predict} takes the example's values as a JSON list, nested or flat, and answers with the list of
 * the model's outputs. Port 0 is any free one.
 */
public class Serve {
  private static final int MAX_BYTES = 1 << 20;

  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 3) {
      System.err.println("usage: Serve PREFIX PORT SIZE...");
      System.exit(2);
    }
    Model model = Model.load(arguments[0]);
    String[] sizes = Arrays.copyOfRange(arguments, 1, arguments.length);
    sizes[0] = "1"; // one example at a time
    long[] shape = Arrays.stream(sizes).mapToLong(Long::parseLong).toArray();
    InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(arguments[1]));
    HttpServer server = HttpServer.create(address, 0);
    server.createContext("/predict", exchange -> answer(exchange, model, shape));
    server.setExecutor(Executors.newFixedThreadPool(16)); // all of them share the model
    server.start();
    System.out.println("http://127.0.0.1:" + server.getAddress().getPort() + "/predict");
  }

  private static void answer(HttpExchange exchange, Model model, long[] shape) throws IOException {
    int status = 200;
    String text;
    try {
      byte[] body = exchange.getRequestBody().readNBytes(MAX_BYTES);
      text = Arrays.toString(model.predict(numbers(new String(body, UTF_8)), shape));
    } catch (HybridNetError | NumberFormatException failure) {
      status = 400;
      text = failure.getMessage();
    }
    byte[] bytes = text.getBytes(UTF_8);
    try (exchange) {
      exchange.sendResponseHeaders(status, bytes.length);
      exchange.getResponseBody().write(bytes);
    }
  }

  private static float[] numbers(String list) {
    String[] words = list.replaceAll("[\\[\\]\\s]", "").split(",");
    float[] values = new float[words.length];
    for (int i = 0; i < words.length; i++) {
      values[i] = Float.parseFloat(words[i]);
    }
    return values;
  }
}
