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
 * the model's outputs. For models of one gray image, {@code GET /} is a page to draw it on, which shows the
 * number of the largest output. Port 0 is any free one.
 */
public class Serve {
  private static final int MAX_BYTES = 1 << 20;

  /** HEIGHT and WIDTH are replaced. Values are 0 to 1, as the pixels that the digits were learned from. */
  private static final String PAGE =
      """
      <!doctype html>
      <html lang="en">
      <meta charset="utf-8">
      <title>Draw a digit</title>
      <style>
        canvas { border: 1px solid; width: 320px; height: 320px; image-rendering: pixelated; touch-action: none }
      </style>
      <canvas id="digit" width="WIDTH" height="HEIGHT"></canvas>
      <p>This is <b id="answer">?</b> <button id="clear">again</button></p>
      <pre id="scores"></pre>
      <script>
        const canvas = document.getElementById("digit"), paper = canvas.getContext("2d");
        const pixels = new Array(WIDTH * HEIGHT).fill(0);
        let asked = 0;
        function show() {
          pixels.forEach((value, i) => {
            const gray = Math.round(255 * (1 - value));
            paper.fillStyle = `rgb(${gray}, ${gray}, ${gray})`;
            paper.fillRect(i % WIDTH, Math.floor(i / WIDTH), 1, 1);
          });
        }
        async function ask() {
          const number = ++asked;
          const answer = await fetch("/predict", {method: "POST", body: JSON.stringify(pixels)});
          const text = await answer.text();
          if (number !== asked) return;  // another answer is on its way
          document.getElementById("scores").textContent = text;
          const scores = answer.ok ? JSON.parse(text) : [];
          document.getElementById("answer").textContent = scores.indexOf(Math.max(...scores));
        }
        canvas.addEventListener("pointermove", event => {
          if (!event.buttons) return;
          const x = event.offsetX / 320 * WIDTH, y = event.offsetY / 320 * HEIGHT;
          pixels.forEach((value, i) => {  // a brush of about a pixel with soft edges
            const far = Math.hypot(i % WIDTH + 0.5 - x, Math.floor(i / WIDTH) + 0.5 - y);
            pixels[i] = Math.max(value, Math.min(1, 1.4 - far));
          });
          show();
          ask();
        });
        document.getElementById("clear").addEventListener("click", () => { pixels.fill(0); show(); ask(); });
        show();
      </script>
      """;

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
    if (shape.length == 4 && shape[1] == 1) {
      String page = PAGE.replace("HEIGHT", "" + shape[2]).replace("WIDTH", "" + shape[3]);
      server.createContext("/", exchange -> send(exchange, 200, "text/html; charset=utf-8", page));
    }
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
    send(exchange, status, status == 200 ? "application/json" : "text/plain; charset=utf-8", text);
  }

  private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
    byte[] bytes = text.getBytes(UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
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
