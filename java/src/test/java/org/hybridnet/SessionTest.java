package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SessionTest {
  @ParameterizedTest
  @MethodSource("org.hybridnet.ModelTest#cases")
  void runsHaveTheBitsOfPython(ModelTest.Case test) {
    Map<String, NDArray> stored = NDArray.load(test.arrays());
    try (Model model = test.load()) {
      NDArray[] inputs = model.inputs().stream().map(name -> stored.get("in:" + name)).toArray(NDArray[]::new);
      try (Session session = model.bind(inputs)) {
        NDArray[] outputs = session.outputs();
        for (int run = 0; run < 2; run++) {
          session.run();
          for (int i = 0; i < outputs.length; i++) {
            assertArrayEquals(stored.get("out:" + i).toBytes(), outputs[i].toBytes(), "output " + i);
          }
        }
      }
    }
  }

  @Test
  void runsReadTheInputAndWriteTheOutputThatAreBound() {
    try (Model model = Model.load(ModelTest.prefix("net"));
        NDArray input = NDArray.zeros(DType.FLOAT32, 1, 1, 8, 8);
        NDArray output = NDArray.zeros(DType.FLOAT32, 1, 10);
        Session session = model.bindInto(new NDArray[] {input}, output)) {
      for (int round = 0; round < 3; round++) {
        float[] values = new float[64];
        values[round] = 1 + round;
        input.copyFrom(values);
        session.run();
        assertArrayEquals(model.predict(values, 1, 1, 8, 8), output.toFloats());
      }
    }
  }

  @Test
  void sessionsOfOneModelRunAtOnceAndOutliveWhatTheyAreMadeOf() {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve("net.params"));
    Model model = Model.load(ModelTest.prefix("net"));
    IntStream.range(0, 4)
        .parallel()
        .forEach(
            i -> {
              NDArray input = stored.get("in:data").copy();
              try (Session session = model.bind(input)) {
                input.close();
                for (int run = 0; run < 200; run++) {
                  session.run();
                  assertArrayEquals(stored.get("out:0").toFloats(), session.outputs()[0].toFloats());
                }
              }
            });
    Session last = model.bind(stored.get("in:data"));
    model.close();
    last.run();
    last.close();
    assertThrows(IllegalStateException.class, last::run);
    assertThrows(IllegalStateException.class, last::outputs);
  }

  @Test
  void runsOnAThreadThatIsBoundToCores() throws Exception {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve("net.params"));
    ExecutorService thread = Executors.newSingleThreadExecutor();
    try (Model model = Model.load(ModelTest.prefix("net"));
        Session session = model.bind(stored.get("in:data"))) {
      thread
          .submit(
              () -> {
                assertThrows(ValueError.class, () -> HybridNet.pinThread(-1));
                assertThrows(NullPointerException.class, () -> HybridNet.pinThread((int[]) null));
                HybridNet.pinThread(firstCore());
                session.run();
                assertArrayEquals(stored.get("out:0").toFloats(), session.outputs()[0].toFloats());
                HybridNet.pinThread();
                return null;
              })
          .get();
    } finally {
      thread.shutdown();
    }
  }

  private static int firstCore() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith("Cpus_allowed_list:"))
        .map(line -> line.split("[:,\\s-]+")[1])
        .mapToInt(Integer::parseInt)
        .findFirst()
        .getAsInt();
  }

  @Test
  void arraysThatDoNotFitAreErrors() {
    try (Model model = Model.load(ModelTest.prefix("net"));
        NDArray input = NDArray.zeros(DType.FLOAT32, 1, 1, 8, 8);
        NDArray wrong = NDArray.zeros(DType.FLOAT32, 3)) {
      assertThrows(HybridNetError.class, () -> model.bind(wrong));
      assertThrows(ValueError.class, () -> model.bind());
      assertThrows(HybridNetError.class, () -> model.bindInto(new NDArray[] {input}, wrong));
      assertThrows(HybridNetError.class, () -> model.bindInto(new NDArray[] {input}));
      assertThrows(NullPointerException.class, () -> model.bindInto(new NDArray[] {input}, (NDArray[]) null));
      assertThrows(NullPointerException.class, () -> model.bind((NDArray) null));
    }
  }
}
