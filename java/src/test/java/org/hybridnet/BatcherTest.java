package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

class BatcherTest {
  private static final TensorSpec IMAGE = new TensorSpec(DType.FLOAT32, 1, 1, 8, 8);

  private static float[] image(int number) {
    Random random = new Random(number);
    float[] values = new float[64];
    for (int i = 0; i < values.length; i++) {
      values[i] = random.nextFloat();
    }
    return values;
  }

  @Test
  void threadsGetTheRowsOfTheirOwnRequests() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(16);
    try (Model model = Model.load(ModelTest.prefix("net"));
        Batcher batcher = model.batcher(new Batcher.Options(32, Duration.ofNanos(50_000), 0, 0), IMAGE)) {
      List<Future<?>> running = new ArrayList<>();
      for (int thread = 0; thread < 16; thread++) {
        int number = thread;
        running.add(
            threads.submit(
                () -> {
                  float[] expected = model.predict(image(number), 1, 1, 8, 8);
                  for (int call = 0; call < 200; call++) {
                    try (NDArray input = NDArray.of(image(number), 1, 1, 8, 8);
                        NDArray output = batcher.predict(input)[0]) {
                      assertArrayEquals(expected, output.toFloats(), 1e-5f);
                    }
                  }
                }));
      }
      for (Future<?> future : running) {
        future.get();
      }
    } finally {
      threads.shutdown();
    }
  }

  @Test
  void wrongRequestsAndAnEndAreErrors() {
    try (Model model = Model.load(ModelTest.prefix("net"));
        Batcher batcher = model.batcher(new Batcher.Options(), IMAGE);
        NDArray wrong = NDArray.zeros(DType.FLOAT32, 1, 1, 8, 9);
        NDArray right = NDArray.zeros(DType.FLOAT32, 3, 1, 8, 8)) {
      assertThrows(ShapeError.class, () -> batcher.predict(wrong));
      assertThrows(ValueError.class, () -> batcher.predict());
      assertEquals(3, batcher.predict(right)[0].shape()[0]);
      batcher.shutdown();
      assertThrows(EngineError.class, () -> batcher.predict(right));
      assertThrows(ValueError.class, () -> model.batcher(new Batcher.Options(-1, Duration.ZERO, 0, 0), IMAGE));
      assertThrows(ShapeError.class, () -> model.batcher(new Batcher.Options(), new TensorSpec(DType.FLOAT32, 5)));
    }
  }
}
