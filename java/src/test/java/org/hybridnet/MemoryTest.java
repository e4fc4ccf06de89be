package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Memory of a process with 64 MB of Java heap. */
class MemoryTest {
  private static long residentMegabytes() throws IOException {
    String pages = Files.readString(Path.of("/proc/self/statm")).split(" ")[1];
    return Long.parseLong(pages) * 4096 >> 20;
  }

  private static void predict(int calls) throws IOException {
    float[] image = new float[64];
    try (Model model = Model.load(ModelTest.prefix("net"))) {
      float[] expected = model.predict(image, 1, 1, 8, 8);
      for (int i = 0; i < calls / 10; i++) {
        model.predict(image, 1, 1, 8, 8);
      }
      long before = residentMegabytes();
      for (int i = 0; i < calls; i++) {
        model.predict(image, 1, 1, 8, 8);
      }
      long after = residentMegabytes();
      assertArrayEquals(expected, model.predict(image, 1, 1, 8, 8));
      assertTrue(after - before < 40, before + " MB before, " + after + " MB after");
    }
  }

  private static void forget(int arrays) throws IOException {
    assertEquals(64, Runtime.getRuntime().maxMemory() >> 20, 8);
    long before = residentMegabytes();
    for (int i = 0; i < arrays; i++) {
      NDArray.of(new float[] {i, 1}, 2).plus(1);
      NDArray.of(new float[] {i, 1}, 2).buffer();
    }
    // 3 * 10^6 arrays of 64 bytes and their handles would be 400 MB
    long after = residentMegabytes();
    assertTrue(after - before < 150, before + " MB before, " + after + " MB after");
  }

  @Test
  void predictionsLeaveNoMemoryBehind() throws IOException {
    predict(100_000);
  }

  @Test
  @Tag("slow")
  void aMillionPredictionsLeaveNoMemoryBehind() throws IOException {
    predict(1_000_000);
  }

  @Test
  void forgottenArraysAreFreed() throws IOException {
    forget(100_000);
  }

  @Test
  @Tag("slow")
  void aMillionForgottenArraysAreFreed() throws IOException {
    forget(1_000_000);
  }

  /** Java's heap stays nearly empty here, so that its collector does not run by itself. */
  @Test
  void largeForgottenArraysDoNotFillTheMachine() throws IOException {
    long before = residentMegabytes();
    long most = 0;
    for (int i = 0; i < 3000; i++) {
      NDArray.zeros(DType.FLOAT32, 1 << 18);
      if (i % 50 == 0) {
        most = Math.max(most, residentMegabytes());
      }
    }
    assertTrue(most - before < 1000, before + " MB before, up to " + most + " MB of 3000");
  }

  @Test
  void wrappedBuffersAreReleased() throws IOException {
    for (int i = 0; i < 20_000; i++) {
      ByteBuffer memory = ByteBuffer.allocateDirect(1 << 16).order(ByteOrder.nativeOrder());
      try (NDArray array = NDArray.wrap(memory, DType.FLOAT32, 1 << 14)) {
        array.plus(1).close();
      }
    }
  }
}
