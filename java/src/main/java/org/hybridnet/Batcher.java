package org.hybridnet;

import java.time.Duration;

/**
 * A model whose calls many threads share, made by {@link Model#batcher}: for servers whose threads
 * request predictions of one or a few rows. Requests that wait at the same time run as one call of
 * the model, and each gets its own rows. Any number of threads may call {@link #predict}.
 *
 * <p>An error in a request fails only that request.
 */
public final class Batcher extends NativeObject {
  private final int outputs;

  /**
   * The rules by which requests share calls.
   *
   * @param maxRows largest number of rows of a shared call; a larger request has its own call. 0: 64
   * @param maxWait time that a request waits for others; zero: only while calls run
   * @param maxWaiting requests that may wait; more fail at once with an EngineError. 0: 1024
   * @param calls number of calls at one time. 0: 1
   */
  public record Options(int maxRows, Duration maxWait, int maxWaiting, int calls) {
    /** Calls of at most 64 rows, one at a time; requests wait only while a call runs. */
    public Options() {
      this(0, Duration.ZERO, 0, 0);
    }
  }

  Batcher(long handle, int outputs) {
    super(handle, 0, Native::batcherFree);
    this.outputs = outputs;
  }

  /**
   * Predicts, and returns when the outputs are computed.
   *
   * @param inputs one array per input of the model, all with the same number of rows, 1 or more; on
   *     the CPU, also if the model is on a GPU
   * @return the outputs, on the CPU, to be closed
   * @throws EngineError if too many requests wait, or after {@link #shutdown}
   * @throws HybridNetError if the inputs do not fit, or an operator fails
   */
  public NDArray[] predict(NDArray... inputs) {
    return NDArray.take(Native.batcherRun(this, inputs, outputs));
  }

  /** Accepts no more requests, and returns when the accepted ones are answered. */
  public void shutdown() {
    Native.batcherClose(this);
  }
}
