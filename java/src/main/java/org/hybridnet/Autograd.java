package org.hybridnet;

/**
 * Gradients. Operators and models that run inside {@code try (var scope = Autograd.record())} are
 * recorded, and {@link #backward(NDArray...)} computes the gradients of the arrays with {@link
 * NDArray#attachGrad()}, parameters of models included.
 *
 * <p>Recording and training are set for each thread.
 */
public final class Autograd {
  private Autograd() {}

  /** The modes of a thread until the end of a block: {@link #close} restores the previous ones. */
  public static final class Scope implements AutoCloseable {
    private final Thread thread = Thread.currentThread();
    private final boolean recordingBefore;
    private final boolean trainingBefore;
    private boolean closed;

    private Scope(boolean recording, boolean training) {
      recordingBefore = Native.setRecording(recording);
      trainingBefore = Native.setTraining(training);
    }

    /**
     * Ends the scope; a second call does nothing.
     *
     * @throws IllegalStateException if called on another thread than the one that opened it
     */
    @Override
    public void close() {
      if (Thread.currentThread() != thread) {
        throw new IllegalStateException(
            "Autograd.Scope.close: the scope belongs to thread "
                + thread.getName()
                + ".\n  Fix: close it there, best by try (...).");
      }
      if (!closed) {
        closed = true;
        Native.setRecording(recordingBefore);
        Native.setTraining(trainingBefore);
      }
    }
  }

  /**
   * Starts recording; operators behave as in training: dropout drops, batch normalization uses the
   * statistics of the batch.
   *
   * @return the scope, to be closed
   */
  public static Scope record() {
    return record(true);
  }

  /**
   * Starts recording.
   *
   * @param trainMode whether operators behave as in training
   * @return the scope, to be closed
   */
  public static Scope record(boolean trainMode) {
    return new Scope(true, trainMode);
  }

  /**
   * Pauses recording; operators behave as in prediction.
   *
   * @return the scope, to be closed
   */
  public static Scope pause() {
    return new Scope(false, false);
  }

  /**
   * Makes operators behave as in training; recording does not change.
   *
   * @return the scope, to be closed
   */
  public static Scope trainMode() {
    return new Scope(isRecording(), true);
  }

  /**
   * Makes operators behave as in prediction; recording does not change.
   *
   * @return the scope, to be closed
   */
  public static Scope predictMode() {
    return new Scope(isRecording(), false);
  }

  /**
   * Whether this thread records.
   *
   * @return true inside {@link #record()}
   */
  public static boolean isRecording() {
    return Native.isRecording();
  }

  /**
   * Whether operators behave as in training on this thread.
   *
   * @return true inside {@link #record()} and {@link #trainMode()}
   */
  public static boolean isTraining() {
    return Native.isTraining();
  }

  /**
   * Computes the gradients of the sum of the heads.
   *
   * @param heads arrays computed while recording, at least one
   * @throws GradientError if a head was not recorded
   */
  public static void backward(NDArray... heads) {
    backward(heads, null, false, true);
  }

  /**
   * Computes gradients.
   *
   * @param heads arrays computed while recording, at least one
   * @param headGrads the gradient of each head; null, or null for one of them, means ones
   * @param retainGraph keep the values that a second call needs
   * @param trainMode whether to compute gradients in training mode
   * @throws GradientError if a head was not recorded
   */
  public static void backward(NDArray[] heads, NDArray[] headGrads, boolean retainGraph, boolean trainMode) {
    Native.backward(heads, headGrads, retainGraph, trainMode);
  }

  /**
   * Computes the gradients of the sum of the heads with respect to variables as new arrays.
   *
   * @param heads arrays computed while recording, at least one
   * @param variables arrays with {@link NDArray#attachGrad()}, at least one
   * @param createGraph record the computation, so that gradients of the gradients can be computed
   * @return one gradient per variable, to be closed
   * @throws GradientError if a head was not recorded or does not depend on a variable
   */
  public static NDArray[] grad(NDArray[] heads, NDArray[] variables, boolean createGraph) {
    return NDArray.take(Native.gradients(heads, variables, createGraph, createGraph, true));
  }
}
