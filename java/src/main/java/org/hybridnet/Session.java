package org.hybridnet;

/**
 * A model with arrays bound to its inputs and outputs, made by {@link Model#bind(NDArray...)}. A run
 * reads the bound inputs and writes the bound outputs in place; it allocates nothing and is done
 * when it returns, on a GPU when an output is read. All arrays lie on the model's device.
 *
 * <p>A model may have many sessions, one for each thread or for each size of its inputs; they share
 * its parameters. Runs of one session from several threads happen one by one. The bound arrays live
 * as long as the session, even if the program closes its own objects for them.
 */
public final class Session extends NativeObject {
  private final int outputs;

  Session(long handle, int outputs) {
    super(handle, 0, Native::sessionFree);
    this.outputs = outputs;
  }

  /**
   * Runs the model on the current values of the inputs and writes the outputs.
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
