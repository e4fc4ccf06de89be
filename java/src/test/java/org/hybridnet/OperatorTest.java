package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class OperatorTest {
  @Test
  void operatorsAreCalledByNameWithAttributes() {
    try (NDArray data = NDArray.of(new float[] {1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3)) {
      Map<String, Object> attributes = Map.of("kernel", new int[] {2, 2}, "pool_type", "sum", "stride", List.of(1, 1));
      assertArrayEquals(
          new float[] {12, 16, 24, 28}, Operator.invoke("Pooling", attributes, data)[0].toFloats());
      assertArrayEquals(
          new float[] {45}, Operator.invoke("sum", Map.of("axis", new int[] {2, 3}, "keepdims", false), data)[0].toFloats());
      assertEquals(DType.FLOAT64, Operator.invoke("Cast", Map.of("dtype", DType.FLOAT64), data)[0].dtype());
    }
  }

  @Test
  void anyNumberOfResultsIsToldAndReturned() {
    try (Operator split = Operator.of("SliceChannel", Map.of("num_outputs", 2000, "axis", 0));
        NDArray data = NDArray.zeros(DType.FLOAT32, 2000, 1)) {
      assertEquals(2000, split.numOutputs(1));
      assertEquals(2000, split.call(data).length);
      assertThrows(ValueError.class, () -> split.numOutputs(2));
    }
  }

  @Test
  void scalarsHaveNumpysShapeOnThreadsThatSaySo() {
    try (NDArray data = NDArray.of(new float[] {1, 2}, 2)) {
      assertEquals(false, HybridNet.setNumpyShapes(true));
      assertEquals(true, HybridNet.hasNumpyShapes());
      assertArrayEquals(new long[0], Operator.invoke("sum", Map.of(), data)[0].shape());
      assertEquals(true, HybridNet.setNumpyShapes(false));
      assertArrayEquals(new long[] {1}, Operator.invoke("sum", Map.of(), data)[0].shape());
    }
  }

  @Test
  void attributesAreWrittenAsInFiles() {
    assertEquals("(2, 2)", Attributes.text(new long[] {2, 2}));
    assertEquals("(3,)", Attributes.text(List.of(3)));
    assertEquals("()", Attributes.text(new int[0]));
    assertEquals("True", Attributes.text(true));
    assertEquals("None", Attributes.text(null));
    assertEquals("0.5", Attributes.text(0.5f));
    assertEquals("-inf", Attributes.text(Double.NEGATIVE_INFINITY));
    assertEquals("nan", Attributes.text(Float.NaN));
    assertEquals("float16", Attributes.text(DType.FLOAT16));
  }

  @Test
  void aPreparedOperatorIsCalledFromManyThreads() {
    try (Operator scale = Operator.of("_mul_scalar", Map.of("scalar", 3));
        NDArray data = NDArray.of(new float[] {1, 2}, 2)) {
      assertEquals("_mul_scalar", scale.name());
      IntStream.range(0, 2000)
          .parallel()
          .forEach(
              i -> {
                try (NDArray result = scale.call(data)[0]) {
                  assertArrayEquals(new float[] {3, 6}, result.toFloats());
                }
              });
    }
  }

  @Test
  void resultsGoIntoArraysThatAreThere() {
    try (Operator add = Operator.of("elemwise_add");
        NDArray a = NDArray.of(new float[] {1, 2}, 2);
        NDArray b = NDArray.of(new float[] {10, 20}, 2)) {
      add.callInto(new NDArray[] {a, b}, a);
      assertArrayEquals(new float[] {11, 22}, a.toFloats());
      assertThrows(ValueError.class, () -> add.callInto(new NDArray[] {a, b}, a, b));
      assertThrows(HybridNetError.class, () -> add.callInto(new NDArray[] {a, b}, NDArray.zeros(DType.FLOAT32, 3)));
    }
  }

  @Test
  void operatorsWithSeveralInputsAndOutputs() {
    try (NDArray data = NDArray.of(new float[] {1, 2, 3, 4}, 2, 2)) {
      NDArray[] columns =
          Operator.invoke("SliceChannel", Map.of("num_outputs", 2, "axis", 1, "squeeze_axis", true), data);
      assertEquals(2, columns.length);
      assertArrayEquals(new float[] {2, 4}, columns[1].toFloats());
      assertArrayEquals(
          new float[] {1, 3, 2, 4, 1, 3},
          Operator.invoke("Concat", Map.of("dim", 0), columns[0], columns[1], columns[0])[0].toFloats());
    }
  }

  @Test
  void namesAreThoseOfPython() {
    assertTrue(Operator.names().containsAll(List.of("FullyConnected", "Convolution", "softmax", "dot")));
  }

  @Test
  void wrongUsesSayWhatIsWrong() {
    try (NDArray data = NDArray.zeros(DType.FLOAT32, 2, 2)) {
      HybridNetError unknown = assertThrows(HybridNetError.class, () -> Operator.of("Pulling"));
      assertTrue(unknown.getMessage().contains("Pulling"), unknown.getMessage());
      ParamError attribute = assertThrows(ParamError.class, () -> Operator.of("sum", Map.of("axes", 1)));
      assertTrue(attribute.getMessage().contains("axes"), attribute.getMessage());
      assertThrows(ParamError.class, () -> Operator.of("FullyConnected", Map.of("num_hidden", "many")));
      assertThrows(ValueError.class, () -> Operator.invoke("dot", Map.of(), data));
      assertThrows(HybridNetError.class, () -> Operator.invoke("dot", Map.of(), data, NDArray.zeros(DType.FLOAT32, 5, 2)));
      assertThrows(UnsupportedError.class, () -> Operator.of("_while_loop"));
      assertThrows(ValueError.class, () -> Operator.of("exp\0"));
      assertThrows(NullPointerException.class, () -> Operator.of(null));
      assertThrows(NullPointerException.class, () -> Operator.of("exp", null));
      assertThrows(NullPointerException.class, () -> Operator.invoke("exp", Map.of(), (NDArray) null));
      Operator closed = Operator.of("exp");
      closed.close();
      assertThrows(IllegalStateException.class, () -> closed.call(data));
      NDArray[] many = new NDArray[3];
      Arrays.fill(many, data);
      many[2] = null;
      String text =
          assertThrows(NullPointerException.class, () -> Operator.invoke("add_n", Map.of(), many)).getMessage();
      assertTrue(text.contains("inputs[2]"), text);
    }
  }

  @Test
  void theProcessHasSettings() {
    assertTrue(HybridNet.version().matches("\\d+\\.\\d+\\..*"), HybridNet.version());
    assertTrue(HybridNet.isa().contains("Highway"), HybridNet.isa());
    assertTrue(HybridNet.engineType().endsWith("Engine") || HybridNet.engineType().startsWith("Threaded"));
    int cores = HybridNet.numThreads();
    HybridNet.setNumThreads(1);
    assertEquals(1, HybridNet.numThreads());
    HybridNet.setNumThreads(cores);
    assertThrows(HybridNetError.class, () -> HybridNet.setNumThreads(0));
    HybridNet.seed(5);
    float[] first = uniform();
    HybridNet.seed(5);
    assertArrayEquals(first, uniform());
    HybridNet.waitAll();
  }

  private static float[] uniform() {
    return Operator.invoke("_random_uniform", Map.of("shape", new int[] {5}))[0].toFloats();
  }
}
