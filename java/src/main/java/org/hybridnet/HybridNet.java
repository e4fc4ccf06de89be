package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Objects;

/** The library in this process. */
public final class HybridNet {
  private HybridNet() {}

  /**
   * The version of the native library.
   *
   * @return for example {@code 0.1.0}
   */
  public static String version() {
    return new String(Native.version(), UTF_8);
  }

  /**
   * The instruction sets in use: the machine's, at most those that {@code HYBRIDNET_MAX_ISA} allows.
   *
   * @return for example {@code avx2 (Highway AVX2, oneDNN AVX2)}
   */
  public static String isa() {
    return new String(Native.isa(), UTF_8);
  }

  /**
   * How operators are run, set by {@code HYBRIDNET_ENGINE_TYPE}.
   *
   * @return {@code ThreadedEnginePerDevice} or {@code NaiveEngine}
   */
  public static String engineType() {
    return new String(Native.engineType(), UTF_8);
  }

  /**
   * Waits until all work is done.
   *
   * @throws HybridNetError the first failure that was not reported before
   */
  public static void waitAll() {
    Native.waitAll();
  }

  /**
   * The cores that the library may use: by default all that the process has.
   *
   * @return their number
   */
  public static int numThreads() {
    return Native.numThreads();
  }

  /**
   * Sets how many cores the library may use.
   *
   * @param cores 1 or more
   * @throws HybridNetError if it is less
   */
  public static void setNumThreads(int cores) {
    Native.setNumThreads(cores);
  }

  /**
   * Binds the calling thread to the first of these cores and the threads that help it to the others,
   * until it ends. What runs on this thread, such as {@link Session#run}, uses these cores. Without
   * cores it may run anywhere again.
   *
   * @param cores numbers of cores that the process may use, each once, at most {@link #numThreads}
   * @throws ValueError for others
   */
  public static void pinThread(int... cores) {
    Native.pinThread(Objects.requireNonNull(cores, "cores"));
  }

  /**
   * Starts the random numbers anew: same seed, same numbers, for any number of threads.
   *
   * @param seed any number
   */
  public static void seed(long seed) {
    Native.seed(seed);
  }

  /**
   * Sets whether this thread has NumPy's shapes: a scalar has shape (), and a size of 0 is one. Every
   * thread begins with MXNet's shapes: results of one number have shape (1), and sizes of 0 in
   * attributes and files stand for what is not known. Set it before a model is loaded.
   *
   * @param on true for NumPy's shapes
   * @return what it was
   */
  public static boolean setNumpyShapes(boolean on) {
    return Native.setNumpyShapes(on);
  }

  /**
   * Whether this thread has NumPy's shapes.
   *
   * @return what {@link #setNumpyShapes} has set
   */
  public static boolean hasNumpyShapes() {
    return Native.hasNumpyShapes();
  }
}
