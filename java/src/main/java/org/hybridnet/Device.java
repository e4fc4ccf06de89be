package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * A device on which arrays lie: the CPU, or a GPU of this process. Operators run on the device of
 * their inputs, and nothing moves by itself: arrays of different devices in one call are an error.
 *
 * @param isGpu whether it is a GPU
 * @param id its number, from 0 on
 */
public record Device(boolean isGpu, int id) {
  private static final int CPU = 1; // HnDeviceType
  private static final int GPU = 2;

  /**
   * The CPU.
   *
   * @return the device
   */
  public static Device cpu() {
    return new Device(false, 0);
  }

  /**
   * A GPU. Its first use throws an UnsupportedError if the process has none with this number.
   *
   * @param id its number, below {@link #numGpus}
   * @return the device
   */
  public static Device gpu(int id) {
    return new Device(true, id);
  }

  /**
   * The number of GPUs that this process can use. The first call loads the driver, if there is one.
   *
   * @return the number; 0 if there is none
   */
  public static int numGpus() {
    return Native.numGpus();
  }

  /**
   * The reason why {@link #numGpus} is 0.
   *
   * @return the reason; empty if there is a GPU
   */
  public static String whyNoGpu() {
    return new String(Native.whyNoGpu(), UTF_8);
  }

  /**
   * The memory of a GPU.
   *
   * @param freeBytes bytes that are free
   * @param totalBytes all bytes
   */
  public record Memory(long freeBytes, long totalBytes) {}

  /**
   * The memory of this GPU.
   *
   * @return free and all bytes
   * @throws UnsupportedError if this is the CPU, or the process has no such GPU
   */
  public Memory memory() {
    if (!isGpu) {
      throw new UnsupportedError("Device.memory: expected a GPU, got " + this + ".\n  Fix: Device.gpu(0).memory()");
    }
    long[] bytes = Native.gpuMemory(id);
    return new Memory(bytes[0], bytes[1]);
  }

  /**
   * Sets whether a library's float32 products on GPUs may round their factors to TF32 (11 significant bits). A setting
   * of the process, off at first. Waits for earlier calls, which keep theirs.
   *
   * @param allow whether they may
   * @return the setting before
   * @throws HybridNetError the error of an earlier call that failed
   */
  public static boolean allowTf32(boolean allow) {
    return Native.allowTf32(allow);
  }

  int type() {
    return isGpu ? GPU : CPU;
  }

  /** Makes a device from {type, id}. */
  static Device take(int[] numbers) {
    return new Device(numbers[0] == GPU, numbers[1]);
  }

  /** The text in the attribute ctx of operators without inputs, such as {@code gpu(0)}. */
  @Override
  public String toString() {
    return (isGpu ? "gpu(" : "cpu(") + id + ")";
  }
}
