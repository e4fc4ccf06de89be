package org.hybridnet;

/**
 * A model with arrays bound to its inputs and outputs, made by {@link Model#bind(NDArray...)}. A run
 * reads the inputs where they are and writes the outputs where they shall be; it allocates nothing
 * and is done when it returns.
 *
 * <p>A model may have many sessions, one for each thread or for each size of its inputs; they share
 * its parameters. Runs of one session from several threads happen one by one. The bound arrays live
 * as long as the session, also where the program closes its own objects for them.
 */
public final class Session extends NativeObject {
  private final int outputs;

  Session(long handle, int outputs) {
    super(handle, 0, Native::sessionFree);
    this.outputs = outputs;
  }

  /**
   * Predicts: afterwards the outputs hold what the model gives for the inputs' present values.
   *
   * @throws HybridNetError if an operator fails
   */
  public void run() {
    Native.sessionRun(this);
  }

  /**
   * The arrays that runs write.
   *
   * @return one per output of the model, to be closed
   */
  public NDArray[] outputs() {
    NDArray[] arrays = new NDArray[outputs];
    for (int i = 0; i < outputs; i++) {
      arrays[i] = NDArray.takeView(Native.sessionOutput(this, i));
    }
    return arrays;
  }
}
