package org.hybridnet;

import java.time.Duration;

/**
 * A model whose calls many threads share, made by {@link Model#batcher}: for servers, whose threads
 * ask for predictions of a row or a few. Requests that wait at one time run as one call of the model,
 * and each gets its own rows. Any number of threads may call {@link #predict}.
 *
 * <p>What is wrong with a request fails that request alone.
 */
public final class Batcher extends NativeObject {
  private final int outputs;

  /**
   * How requests share calls.
   *
   * @param maxRows of a shared call; a request of more has a call of its own. 0: 64
   * @param maxWait how long a request waits for others; zero: only while calls run
   * @param maxWaiting requests that may wait; more fail at once with an EngineError. 0: 1024
   * @param calls at one time. 0: 1
   */
  public record Options(int maxRows, Duration maxWait, int maxWaiting, int calls) {
    /** Calls of 64 rows, one at a time; requests wait only while it runs. */
    public Options() {
      this(0, Duration.ZERO, 0, 0);
    }
  }

  Batcher(long handle, int outputs) {
    super(handle, 0, Native::batcherFree);
    this.outputs = outputs;
  }

  /**
   * Predicts, and returns when the outputs hold their values.
   *
   * @param inputs one array per input of the model, all of one number of rows, 1 or more
   * @return the outputs, to be closed
   * @throws EngineError if too many requests wait, or after {@link #shutdown}
   * @throws HybridNetError if the inputs do not fit, or an operator fails
   */
  public NDArray[] predict(NDArray... inputs) {
    return NDArray.take(Native.batcherRun(this, inputs, outputs));
  }

  /** Takes no more requests, and returns when those that it has are answered. */
  public void shutdown() {
    Native.batcherClose(this);
  }
}
