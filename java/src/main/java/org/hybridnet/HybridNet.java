package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.Objects;

/** Functions for the whole process: version, engine, cores, random numbers. */
public final class HybridNet {
  private HybridNet() {}

  /**
   * The version of the native library.
   *
   * @return for example {@code 0.2.0}
   */
  public static String version() {
    return new String(Native.version(), UTF_8);
  }

  /**
   * The instruction sets in use: those of the machine, limited by {@code HYBRIDNET_MAX_ISA}.
   *
   * @return for example {@code avx2 (Highway AVX2, oneDNN AVX2)}
   */
  public static String isa() {
    return new String(Native.isa(), UTF_8);
  }

  /**
   * The engine that runs operators, set by {@code HYBRIDNET_ENGINE_TYPE}.
   *
   * @return {@code ThreadedEnginePerDevice} or {@code NaiveEngine}
   */
  public static String engineType() {
    return new String(Native.engineType(), UTF_8);
  }

  /**
   * Waits until all work is done.
   *
   * @throws HybridNetError for the first failure that was not reported before
   */
  public static void waitAll() {
    Native.waitAll();
  }

  /**
   * The number of cores that the library may use: by default all cores of the process.
   *
   * @return the number of cores
   */
  public static int numThreads() {
    return Native.numThreads();
  }

  /**
   * Sets the number of cores that the library may use.
   *
   * @param cores 1 or more
   * @throws HybridNetError if it is less
   */
  public static void setNumThreads(int cores) {
    Native.setNumThreads(cores);
  }

  /**
   * Binds the calling thread to the first of these cores and its helper threads to the others, until
   * it ends. Calls on this thread, such as {@link Session#run}, use these cores. An empty list
   * removes the binding.
   *
   * @param cores indices of cores that the process may use, each once, at most {@link #numThreads}
   * @throws ValueError for other numbers
   */
  public static void pinThread(int... cores) {
    Native.pinThread(Objects.requireNonNull(cores, "cores"));
  }

  /**
   * Seeds the random numbers: the same seed gives the same numbers, for any number of threads.
   *
   * @param seed any number
   */
  public static void seed(long seed) {
    Native.seed(seed);
  }

  /**
   * Sets whether this thread uses NumPy's shapes: a scalar has shape (), and 0 is a valid size. Every
   * thread starts with MXNet's shapes: results of one number have shape (1), and sizes of 0 in
   * attributes and files mean unknown. Set it before a model is loaded.
   *
   * @param on true for NumPy's shapes
   * @return the previous setting
   */
  public static boolean setNumpyShapes(boolean on) {
    return Native.setNumpyShapes(on);
  }

  /**
   * Whether this thread uses NumPy's shapes.
   *
   * @return the setting of {@link #setNumpyShapes}
   */
  public static boolean hasNumpyShapes() {
    return Native.hasNumpyShapes();
  }
}
