package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class NDArrayTest {
  @Test
  void valuesOfEachTypeGoInAndOut() {
    float[] floats = {1.5f, -0f, Float.NaN, Float.MIN_VALUE};
    double[] doubles = {Math.PI, -0.0, Double.NEGATIVE_INFINITY, 1e-300};
    int[] ints = {Integer.MIN_VALUE, -1, 0, Integer.MAX_VALUE};
    long[] longs = {Long.MIN_VALUE, -1, 0, Long.MAX_VALUE};
    byte[] bytes = {-128, -1, 0, 127};
    assertArrayEquals(floats, NDArray.of(floats, 2, 2).toFloats());
    assertArrayEquals(doubles, NDArray.of(doubles, 4).toDoubles());
    assertArrayEquals(ints, NDArray.of(ints, 1, 4).toInts());
    assertArrayEquals(longs, NDArray.of(longs, 4, 1).toLongs());
    assertArrayEquals(bytes, NDArray.ofBytes(DType.INT8, bytes, 4).toBytes());
    assertArrayEquals(bytes, NDArray.ofBytes(DType.UINT8, bytes, 2, 2).toBytes());
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void eachDTypeHasMemoryAsBytes(DType dtype) {
    byte[] bytes = new byte[3 * dtype.bytes()];
    bytes[dtype.bytes()] = 1;
    try (NDArray array = NDArray.zeros(dtype, 3)) {
      array.copyFrom(bytes);
      assertArrayEquals(bytes, array.toBytes());
      assertEquals(dtype, array.dtype());
      assertEquals("NDArray " + dtype + " (3,)", array.toString());
      assertEquals(dtype, DType.ofCode(dtype.code()));
    }
  }

  @Test
  void scalarsAndEmptyArraysExist() {
    try (NDArray scalar = NDArray.of(new float[] {7});
        NDArray empty = NDArray.of(new long[0], 3, 0)) {
      assertArrayEquals(new long[0], scalar.shape());
      assertArrayEquals(new float[] {7}, scalar.toFloats());
      assertArrayEquals(new long[] {3, 0}, empty.shape());
      assertEquals(0, empty.size());
      assertArrayEquals(new long[0], empty.toLongs());
      assertEquals(0, empty.buffer().remaining());
    }
  }

  @Test
  void valuesAreOverwritten() {
    try (NDArray array = NDArray.zeros(DType.FLOAT64, 2)) {
      array.copyFrom(new double[] {1, 2});
      assertArrayEquals(new double[] {1, 2}, array.toDoubles());
    }
    try (NDArray array = NDArray.zeros(DType.INT32, 2)) {
      array.copyFrom(new int[] {1, 2});
      assertArrayEquals(new int[] {1, 2}, array.toInts());
    }
    try (NDArray array = NDArray.zeros(DType.INT64, 2)) {
      array.copyFrom(new long[] {1, 2});
      assertArrayEquals(new long[] {1, 2}, array.toLongs());
    }
  }

  @Test
  void slicesAndReshapesAreViewsAndCopiesAreNot() {
    try (NDArray array = NDArray.zeros(DType.FLOAT32, 3, 2);
        NDArray row = array.slice(1, 2);
        NDArray flat = array.reshape(6);
        NDArray copy = array.copy();
        NDArray shared = array.share();
        NDArray detached = array.detach()) {
      row.copyFrom(new float[] {5, 6});
      float[] expected = {0, 0, 5, 6, 0, 0};
      assertArrayEquals(expected, array.toFloats());
      assertArrayEquals(expected, flat.toFloats());
      assertArrayEquals(expected, shared.toFloats());
      assertArrayEquals(expected, detached.toFloats());
      assertArrayEquals(new float[6], copy.toFloats());
      assertArrayEquals(new long[] {1, 2}, row.shape());
      array.close();
      assertArrayEquals(expected, shared.toFloats());
    }
  }

  @Test
  void arithmeticIsThatOfTheOperators() {
    try (NDArray a = NDArray.of(new float[] {1, 2, 3, 4}, 2, 2);
        NDArray b = NDArray.of(new float[] {10, 20}, 2)) {
      assertArrayEquals(new float[] {11, 22, 13, 24}, a.plus(b).toFloats());
      assertArrayEquals(new float[] {-9, -18, -7, -16}, a.minus(b).toFloats());
      assertArrayEquals(new float[] {10, 40, 30, 80}, a.times(b).toFloats());
      assertArrayEquals(new float[] {10, 10}, b.div(a.slice(0, 1)).reshape(2).toFloats());
      assertArrayEquals(new float[] {1.5f, 2.5f, 3.5f, 4.5f}, a.plus(0.5).toFloats());
      assertArrayEquals(new float[] {0, 1, 2, 3}, a.minus(1).toFloats());
      assertArrayEquals(new float[] {2, 4, 6, 8}, a.times(2).toFloats());
      assertArrayEquals(new float[] {0.5f, 1, 1.5f, 2}, a.div(2).toFloats());
      assertArrayEquals(new float[] {-1, -2, -3, -4}, a.unaryMinus().toFloats());
      assertArrayEquals(new int[] {1, 2, 3, 4}, a.asType(DType.INT32).toInts());
    }
  }

  @Test
  void aWrappedBufferIsTheArraysMemory() {
    ByteBuffer memory = ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder());
    memory.position(8).limit(24);
    try (NDArray array = NDArray.wrap(memory, DType.FLOAT32, 4)) {
      memory.putFloat(12, 2.5f);
      assertArrayEquals(new float[] {0, 2.5f, 0, 0}, array.toFloats());
      array.copyFrom(new float[] {1, 2, 3, 4});
      assertEquals(4, memory.getFloat(20));
      assertEquals(0, memory.limit(32).getFloat(24));
    }
  }

  @Test
  void aWrappedBufferLivesAsLongAsTheArray() {
    NDArray array = wrapForgotten();
    WeakReference<Object> garbage = new WeakReference<>(new Object());
    while (garbage.get() != null) {
      System.gc();
    }
    float[] expected = new float[1 << 18];
    expected[7] = 3;
    assertArrayEquals(expected, array.toFloats());
    array.close();
  }

  private static NDArray wrapForgotten() {
    ByteBuffer memory = ByteBuffer.allocateDirect(4 << 18).order(ByteOrder.nativeOrder());
    memory.putFloat(28, 3);
    return NDArray.wrap(memory, DType.FLOAT32, 1 << 18);
  }

  @Test
  void theBufferOfAnArrayOutlivesIt() {
    FloatBuffer floats;
    try (NDArray array = NDArray.of(new float[] {1, 2, 3}, 3)) {
      floats = array.buffer().asFloatBuffer();
      floats.put(1, 9);
      assertArrayEquals(new float[] {1, 9, 3}, array.toFloats());
    }
    System.gc();
    assertEquals(9, floats.get(1));
    assertEquals(3, floats.remaining());
  }

  @Test
  void filesHoldNamedArrays(@TempDir Path folder) {
    Path file = folder.resolve("values.params");
    Map<String, NDArray> arrays = new LinkedHashMap<>();
    arrays.put("weight \u00e4\ud83d\ude00", NDArray.of(new float[] {1, 2}, 2));
    arrays.put("ids", NDArray.of(new long[] {3}, 1));
    NDArray.save(file, arrays);
    Map<String, NDArray> loaded = NDArray.load(file);
    assertEquals(List.copyOf(arrays.keySet()), List.copyOf(loaded.keySet()));
    assertArrayEquals(new long[] {3}, loaded.get("ids").toLongs());
  }

  @Test
  void aDamagedFileIsAnError(@TempDir Path folder) throws Exception {
    Path file = folder.resolve("damaged.params");
    Files.write(file, new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9});
    assertTrue(assertThrows(FormatError.class, () -> NDArray.load(file)).getMessage().contains("damaged.params"));
    assertThrows(FileError.class, () -> NDArray.load(folder.resolve("none")));
    assertThrows(FileError.class, () -> NDArray.save(folder.resolve("no/such/folder"), Map.of()));
  }

  @Test
  void valuesThatDoNotFitAreErrors() {
    try (NDArray ints = NDArray.zeros(DType.INT32, 2, 3)) {
      DTypeError dtype = assertThrows(DTypeError.class, ints::toFloats);
      assertTrue(dtype.getMessage().contains("expected an array of dtype float32"), dtype.getMessage());
      assertTrue(dtype.getMessage().contains("got int32"), dtype.getMessage());
      assertThrows(DTypeError.class, () -> ints.copyFrom(new double[6]));
      assertThrows(ValueError.class, () -> ints.copyTo(new int[5]));
      assertThrows(ValueError.class, () -> ints.copyFrom(new byte[6]));
      assertThrows(NullPointerException.class, () -> ints.copyTo((int[]) null));
      assertThrows(NullPointerException.class, () -> ints.copyFrom((byte[]) null));
      assertThrows(HybridNetError.class, () -> ints.reshape(4));
      assertThrows(HybridNetError.class, () -> ints.slice(1, 7));
      assertThrows(HybridNetError.class, () -> ints.plus(NDArray.zeros(DType.INT32, 4, 4)).await());
      assertThrows(NullPointerException.class, () -> ints.plus(null));
    }
    assertThrows(ValueError.class, () -> NDArray.of(new float[3], 2, 2));
    assertThrows(NullPointerException.class, () -> NDArray.of((float[]) null, 2, 2));
    assertThrows(NullPointerException.class, () -> NDArray.of(new float[3], (long[]) null));
    assertThrows(ShapeError.class, () -> NDArray.zeros(DType.FLOAT32, -1));
    assertThrows(ShapeError.class, () -> NDArray.zeros(DType.FLOAT32, Long.MAX_VALUE, 2));
    assertThrows(ShapeError.class, () -> NDArray.zeros(DType.FLOAT32, new long[17]));
    assertThrows(OutOfMemoryError.class, () -> NDArray.zeros(DType.FLOAT32, 1L << 50));
  }

  @Test
  void sparseArraysHavePartsAndDenseValues(@TempDir Path folder) {
    NDArray data = NDArray.of(new float[] {1, 2, 3, 4}, 2, 2);
    NDArray rows = NDArray.rowSparse(data, NDArray.of(new long[] {3, 1}, 2), 4, 2);
    assertEquals("row_sparse", rows.storage());
    assertArrayEquals(new long[] {4, 2}, rows.shape());
    assertArrayEquals(new long[] {1, 3}, rows.part("indices").toLongs());
    assertArrayEquals(new float[] {0, 0, 3, 4, 0, 0, 1, 2}, rows.toFloats());
    assertArrayEquals(new float[] {0, 0, 3, 4, 0, 0, 1, 2}, rows.toDense().toFloats());
    NDArray matrix = rows.toDense().castStorage("csr");
    assertArrayEquals(new long[] {0, 0, 2, 2, 4}, matrix.part("indptr").toLongs());
    Path file = folder.resolve("sparse.params");
    NDArray.save(file, List.of(rows, matrix));
    List<NDArray> loaded = NDArray.loadList(file);
    assertEquals("row_sparse", loaded.get(0).storage());
    assertEquals("csr", loaded.get(1).storage());
    assertArrayEquals(matrix.toFloats(), loaded.get(1).toFloats());
    assertEquals(List.of("0", "1"), List.copyOf(NDArray.load(file).keySet()));
    assertThrows(TypeError.class, () -> data.part("data"));
    assertThrows(ValueError.class, () -> rows.part("indptr"));
    assertThrows(UnsupportedError.class, rows::buffer);
    assertThrows(FormatError.class, () -> NDArray.rowSparse(data, NDArray.of(new long[] {4, 1}, 2), 4, 2));
    assertThrows(NullPointerException.class, () -> NDArray.csr(data, data, null, 4, 2));
  }

  @Test
  void aTrainerUpdatesTheRowsThatAGradientReaches() {
    NDArray table = NDArray.of(new float[] {1, 1, 1, 1, 1, 1}, 3, 2);
    Trainer trainer = new Trainer(Map.of("table", table), "sgd", Map.of("learning_rate", 0.5, "wd", 1));
    table.attachGrad("write", "row_sparse");
    NDArray taken;
    try (var recording = Autograd.record()) {
      taken = Operator.invoke("Embedding", Map.of("input_dim", 3, "output_dim", 2, "sparse_grad", true),
          NDArray.of(new float[] {2}, 1), table)[0];
    }
    taken.backward();
    assertArrayEquals(new long[] {2}, table.grad().part("indices").toLongs());
    trainer.step(1);
    assertArrayEquals(new float[] {1, 1, 1, 1, 0, 0}, table.toFloats());
  }

  @Test
  void buffersThatCannotBeWrappedAreErrors() {
    ByteBuffer good = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    ByteBuffer swapped = ByteBuffer.allocateDirect(16);
    assertThrows(ValueError.class, () -> NDArray.wrap(ByteBuffer.allocate(16), DType.FLOAT32, 4));
    assertThrows(ValueError.class, () -> NDArray.wrap(swapped.order(ByteOrder.BIG_ENDIAN), DType.FLOAT32, 4));
    assertThrows(ValueError.class, () -> NDArray.wrap(good.asReadOnlyBuffer(), DType.FLOAT32, 4));
    assertThrows(ValueError.class, () -> NDArray.wrap(good, DType.FLOAT32, 5));
    assertThrows(ValueError.class, () -> NDArray.wrap(good, DType.FLOAT32, -4));
    assertThrows(ValueError.class, () -> NDArray.wrap(good, DType.FLOAT32, Long.MAX_VALUE, Long.MAX_VALUE));
    assertThrows(ValueError.class, () -> NDArray.wrap(good.position(2).limit(14), DType.FLOAT32, 3));
    assertThrows(NullPointerException.class, () -> NDArray.wrap(null, DType.FLOAT32, 3));
  }

  @Test
  void aClosedArrayIsAnErrorEverywhere() {
    NDArray array = NDArray.zeros(DType.FLOAT32, 2);
    array.close();
    array.close();
    assertTrue(array.isClosed());
    assertEquals("NDArray (closed)", array.toString());
    List<Consumer<NDArray>> uses =
        List.of(
            NDArray::shape, NDArray::dtype, NDArray::size, NDArray::await, NDArray::toFloats, NDArray::toBytes,
            NDArray::buffer, NDArray::share, NDArray::copy, NDArray::detach, NDArray::attachGrad, NDArray::grad,
            NDArray::backward, NDArray::unaryMinus, a -> a.reshape(2), a -> a.slice(0, 1), a -> a.plus(a),
            a -> a.plus(1), a -> a.asType(DType.INT8), a -> a.copyTo(new float[2]), a -> a.copyFrom(new float[2]),
            a -> NDArray.save(Path.of("/tmp/none"), Map.of("a", a)));
    for (Consumer<NDArray> use : uses) {
      String text = assertThrows(IllegalStateException.class, () -> use.accept(array)).getMessage();
      assertTrue(text.contains("was closed"), text);
    }
  }

  @Test
  void closingWhileOthersReadIsAnErrorOrAValue() throws Exception {
    for (int round = 0; round < 300; round++) {
      NDArray array = NDArray.zeros(DType.FLOAT32, 1000);
      Thread reader =
          new Thread(
              () -> {
                try {
                  while (true) {
                    assertEquals(1000, array.toFloats().length);
                  }
                } catch (IllegalStateException | ValueError closed) {
                  // the allowed errors after close()
                }
              });
      reader.start();
      Thread.yield();
      array.close();
      reader.join();
    }
  }
}
