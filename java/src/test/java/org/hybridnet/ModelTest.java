package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ModelTest {
  /** One line of cases.txt: see write_models.py. */
  record Case(String name, Path symbol, Path params, Path arrays) {
    Model load() {
      return Model.load(symbol, params);
    }

    @Override
    public String toString() {
      return name;
    }
  }

  static Path models() {
    return Path.of(System.getProperty("hybridnet.models"));
  }

  static String prefix(String name) {
    return models().resolve(name).toString();
  }

  static Stream<Case> cases() throws IOException {
    return Files.readAllLines(models().resolve("cases.txt")).stream()
        .map(line -> line.split("\t"))
        .map(w -> new Case(w[0], Path.of(w[1]), w[2].equals("-") ? null : Path.of(w[2]), Path.of(w[3])));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void outputsHaveTheBitsOfPython(Case test) {
    Map<String, NDArray> stored = NDArray.load(test.arrays);
    try (Model model = test.load()) {
      NDArray[] inputs = model.inputs().stream().map(name -> stored.get("in:" + name)).toArray(NDArray[]::new);
      NDArray[] outputs = model.predict(inputs);
      assertEquals(stored.keySet().stream().filter(name -> name.startsWith("out:")).count(), outputs.length);
      for (int i = 0; i < outputs.length; i++) {
        NDArray expected = stored.get("out:" + i);
        assertArrayEquals(expected.shape(), outputs[i].shape());
        assertEquals(expected.dtype(), outputs[i].dtype());
        assertArrayEquals(expected.toBytes(), outputs[i].toBytes(), "output " + i);
      }
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void statesAndSpecsAreThoseOfTheFile(Case test) {
    if (test.params == null) {
      return;
    }
    Map<String, NDArray> file = NDArray.load(test.params);
    try (Model model = test.load()) {
      Map<String, TensorSpec> specs = model.parameterSpecs();
      for (Map.Entry<String, TensorSpec> parameter : specs.entrySet()) {
        String name = parameter.getKey();
        boolean saidToBeState = file.containsKey("aux:" + name); // MXNet does not mark states inside loops
        assertTrue(!saidToBeState || model.states().contains(name), name);
        String key = Stream.of("aux:", "arg:", "").map(p -> p + name).filter(file::containsKey).findFirst().get();
        NDArray stored = file.get(key);
        assertEquals(new TensorSpec(stored.dtype(), stored.shape()), parameter.getValue(), name);
      }
      assertEquals(model.parameters().keySet(), specs.keySet());
    }
  }

  @Test
  void manyThreadsRunOneModel() throws Exception {
    Map<String, NDArray> stored = NDArray.load(models().resolve("net.params"));
    ExecutorService threads = Executors.newFixedThreadPool(6);
    try (Model model = Model.load(prefix("net"))) {
      List<Future<?>> running = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        running.add(
            threads.submit(
                () -> {
                  for (int call = 0; call < 200; call++) {
                    try (NDArray output = model.predict(stored.get("in:data"))[0]) {
                      assertArrayEquals(stored.get("out:0").toFloats(), output.toFloats());
                    }
                  }
                }));
      }
      for (Future<?> each : running) {
        each.get();
      }
    } finally {
      threads.shutdown();
    }
  }

  @Test
  void itSaysWhatItTakesAndGives() {
    try (Model model = Model.load(prefix("net"))) {
      assertEquals(List.of("data"), model.inputs());
      assertEquals(1, model.outputs().size());
      assertEquals(1, model.inputSpecs().size());
      assertEquals(
          List.of(new TensorSpec(DType.FLOAT32, 7, 10)), model.infer(new TensorSpec(DType.FLOAT32, 7, 1, 8, 8)));
      assertEquals(6, model.parameters().size());
      model.predict(new float[64], 1, 1, 8, 8);
      assertTrue(model.planText().contains("onvolution"), model.planText());
    }
  }

  @Test
  void whatGradientsComputeAgainMayBeSaid() {
    try (Model model = Model.load(prefix("net"))) {
      float[] before = model.predict(new float[64], 1, 1, 8, 8);
      for (String remat : List.of("none", "1000000", "auto")) {
        model.setRemat(remat);
        assertArrayEquals(before, model.predict(new float[64], 1, 1, 8, 8));
      }
      assertThrows(ParamError.class, () -> model.setRemat("much"));
    }
  }

  @Test
  void theWaysToPredictAgree() {
    float[] values = new float[64];
    for (int i = 0; i < 64; i++) {
      values[i] = i / 64f;
    }
    try (Model model = Model.load(prefix("net"));
        NDArray data = NDArray.of(values, 1, 1, 8, 8);
        NDArray into = NDArray.zeros(DType.FLOAT32, 1, 10)) {
      float[] expected = model.predict(data)[0].toFloats();
      assertArrayEquals(expected, model.predict(values, 1, 1, 8, 8));
      assertArrayEquals(expected, model.predict(Map.of("data", data)).values().iterator().next().toFloats());
      model.predictInto(new NDArray[] {data}, into);
      assertArrayEquals(expected, into.toFloats());
    }
  }

  @Test
  void modelsComeFromBytesAndGoToFiles(@TempDir Path folder) throws IOException {
    byte[] symbol = Files.readAllBytes(Path.of(prefix("net") + "-symbol.json"));
    byte[] params = Files.readAllBytes(Path.of(prefix("net") + "-0000.params"));
    String copy = folder.resolve("gr\u00fc\u00dfe\ud83d\ude00").toString();
    try (Model model = Model.load(symbol, params)) {
      model.save(copy);
      try (Model loaded = Model.load(copy)) {
        assertArrayEquals(
            model.predict(new float[64], 1, 1, 8, 8), loaded.predict(new float[64], 1, 1, 8, 8));
      }
    }
  }

  @Test
  void whatIsWrittenIntoAParameterCounts() {
    try (Model model = Model.load(prefix("net"))) {
      float[] before = model.predict(new float[64], 1, 1, 8, 8);
      String bias = model.parameters().keySet().stream().filter(n -> n.endsWith("bias")).reduce((a, b) -> b).get();
      try (NDArray parameter = model.parameter(bias)) {
        float[] values = parameter.toFloats();
        for (int i = 0; i < values.length; i++) {
          values[i] += 1;
        }
        parameter.copyFrom(values);
      }
      float[] after = model.predict(new float[64], 1, 1, 8, 8);
      for (int i = 0; i < after.length; i++) {
        assertEquals(before[i] + 1, after[i], 1e-6);
      }
    }
  }

  @Test
  void whatIsWrittenIntoTheBufferOfAParameterCounts() {
    float[] ones = new float[64];
    java.util.Arrays.fill(ones, 1);
    try (Model model = Model.load(prefix("net"));
        Model judge = Model.load(prefix("net"))) {
      for (int i = 0; i < 3; i++) {
        model.predict(ones, 1, 1, 8, 8);
      }
      for (String name : model.parameters().keySet()) {
        try (NDArray parameter = model.parameter(name);
            NDArray other = judge.parameter(name)) {
          java.nio.FloatBuffer memory = parameter.buffer().asFloatBuffer();
          for (int turn = 1; turn < 3; turn++) {
            float[] values = new float[memory.remaining()];
            for (int i = 0; i < values.length; i++) {
              values[i] = (float) Math.sin(i * turn) / 4 + 0.5f;
              memory.put(i, values[i]);
            }
            other.copyFrom(values);
            assertArrayEquals(
                judge.predict(ones, 1, 1, 8, 8), model.predict(ones, 1, 1, 8, 8), 1e-4f, name);
          }
        }
      }
    }
  }

  @Test
  void errorsSayWhatWasExpectedAndGiven() {
    HybridNetError missing = assertThrows(FileError.class, () -> Model.load("/no/such/model"));
    assertTrue(missing.getMessage().contains("/no/such/model-symbol.json"), missing.getMessage());
    assertThrows(FormatError.class, () -> Model.load("{}".getBytes(), null));
    assertThrows(NullPointerException.class, () -> Model.load((byte[]) null, null));
    Path symbol = Path.of(prefix("net") + "-symbol.json");
    Path others = Path.of(prefix("lstm") + "-0000.params");
    HybridNetError foreign = assertThrows(FormatError.class, () -> Model.load(symbol, others));
    assertTrue(foreign.getMessage().contains(others.toString()), foreign.getMessage());
    try (Model model = Model.load(prefix("net"));
        NDArray wrong = NDArray.zeros(DType.FLOAT32, 2, 3)) {
      ShapeError shape = assertThrows(ShapeError.class, () -> model.predict(wrong)[0].await());
      assertTrue(shape.getMessage().contains("expected"), shape.getMessage());
      assertThrows(ValueError.class, () -> model.predict(wrong, wrong));
      assertThrows(ValueError.class, () -> model.predict());
      assertThrows(ValueError.class, () -> model.predict(Map.of("other", wrong)));
      assertThrows(ValueError.class, () -> model.parameter("none"));
      assertThrows(NullPointerException.class, () -> model.predict((NDArray) null));
      assertThrows(NullPointerException.class, () -> model.predict((NDArray[]) null));
      assertThrows(HybridNetError.class, () -> model.infer(new TensorSpec(DType.FLOAT32, new long[20])));
      assertThrows(HybridNetError.class, () -> model.infer(new TensorSpec(null, 1, 1, 8, 8)));
      wrong.close();
      IllegalStateException closed = assertThrows(IllegalStateException.class, () -> model.predict(wrong));
      assertTrue(closed.getMessage().contains("inputs[0] was closed"), closed.getMessage());
      assertFalse(model.isClosed());
      model.close();
      model.close();
      assertThrows(IllegalStateException.class, () -> model.predict(new float[64], 1, 1, 8, 8));
    }
  }
}
