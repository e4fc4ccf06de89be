package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Warnings and errors in Java for indices and lengths out of range. */
class NumbersOutOfRangeTest {
  private static final String PICK = "'pick', input 'index': expected an integer from 0 to 2, got 7 at position 2";
  private static final String LAST =
      "'SequenceLast', input 'sequence_length': expected an integer from 1 to 4, got 9 at position 2";

  /** The program that the tests run in new processes, because the environment is read only once. */
  static final class Program {
    private Program() {}

    public static void main(String[] arguments) {
      try (NDArray data = NDArray.of(new float[] {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 4, 3);
          NDArray index = NDArray.of(new float[] {0, 1, 7, 2}, 4);
          NDArray lengths = NDArray.of(new float[] {4, 1, 9}, 3)) {
        for (int i = 0; i < 2; ++i) {
          print("pick", Map.of(), data, index);
          print("SequenceLast", Map.of("use_sequence_length", true), data, lengths);
        }
      }
    }

    private static void print(String operator, Map<String, Object> attributes, NDArray... inputs) {
      try (NDArray result = Operator.invoke(operator, attributes, inputs)[0]) {
        System.out.println(Arrays.toString(result.toFloats()));
      } catch (IndexError error) {
        System.out.println("IndexError: " + error.getMessage());
      }
    }
  }

  @TempDir Path folder;

  private String printed;
  private String complaint;

  private void run(String strict) throws IOException, InterruptedException {
    File out = folder.resolve("out").toFile();
    File error = folder.resolve("error").toFile();
    ProcessBuilder builder =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Djava.library.path=" + System.getProperty("java.library.path"),
                "-cp",
                System.getProperty("java.class.path"),
                Program.class.getName())
            .redirectOutput(out)
            .redirectError(error);
    builder.environment().put("HYBRIDNET_STRICT", strict);
    Process process = builder.start();
    assertTrue(process.waitFor(60, TimeUnit.SECONDS));
    printed = Files.readString(out.toPath());
    complaint = Files.readString(error.toPath());
    assertEquals(0, process.exitValue(), complaint);
  }

  private static int count(String text, String part) {
    return text.split(Pattern.quote(part), -1).length - 1;
  }

  @Test
  void aNumberOutOfRangeIsSaidOnceOnStandardError() throws IOException, InterruptedException {
    run("0");
    List<String> results = List.of("[0.0, 4.0, 8.0, 11.0]", "[9.0, 1.0, 11.0]");
    assertEquals(Collections.nCopies(2, results).stream().flatMap(List::stream).toList(), printed.lines().toList());
    assertEquals(1, count(complaint, PICK), complaint);
    assertEquals(1, count(complaint, LAST), complaint);
  }

  @Test
  void strictMakesItAnIndexErrorOfEachCall() throws IOException, InterruptedException {
    run("1");
    assertEquals(4, count(printed, "IndexError: "), printed);
    assertEquals(2, count(printed, PICK), printed);
    assertEquals(2, count(printed, LAST), printed);
    assertEquals("", complaint);
  }
}
