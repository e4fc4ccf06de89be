package org.hybridnet;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * An object whose memory is outside Java's heap. {@link #close} frees it at once; without it the
 * memory is freed after the garbage collector has found the object unreachable.
 */
public abstract sealed class NativeObject implements AutoCloseable
    permits NDArray, Model, Operator, Session, Batcher, Trainer {
  private static final Cleaner CLEANER = Cleaner.create();
  // Bytes of all objects not freed yet. The collector does not see this memory: unreachable arrays
  // would fill the machine's memory while Java's heap is nearly empty.
  private static final AtomicLong BYTES = new AtomicLong();
  private static final long MIN_LIMIT = 256L << 20;
  // Bytes counted per object in addition to its memory. An object takes about 900 bytes in small
  // blocks, and the cleaner some time to free it: 65,000 unreachable objects start a collection.
  private static final long OVERHEAD = 4096;
  private static final AtomicLong LIMIT = new AtomicLong(MIN_LIMIT);

  // Read by the native library; 0 after close().
  private volatile long handle;
  private final Cleaner.Cleanable cleanable;

  NativeObject(long handle, long bytes, LongConsumer free) {
    this.handle = handle;
    cleanable = freeWithout(this, handle, bytes, free);
  }

  /** Calls free(handle) once: in close(), or when owner is unreachable. */
  static Cleaner.Cleanable freeWithout(Object owner, long handle, long bytes, LongConsumer free) {
    long counted = bytes + OVERHEAD;
    long all = BYTES.addAndGet(counted);
    long limit = LIMIT.get();
    if (all > limit && LIMIT.compareAndSet(limit, 2 * all)) {
      collect(limit / 2);
    }
    return CLEANER.register(
        owner,
        () -> {
          free.accept(handle);
          long left = BYTES.addAndGet(-counted);
          long now = LIMIT.get();
          if (now > MIN_LIMIT && left < now / 4) {
            LIMIT.compareAndSet(now, Math.max(MIN_LIMIT, now / 2));
          }
        });
  }

  /**
   * Runs the garbage collector, and waits while the cleaner frees unreachable objects, until at most
   * goal bytes are left: a program that drops objects faster would still fill the machine's memory.
   */
  private static void collect(long goal) {
    System.gc();
    long before = Long.MAX_VALUE;
    for (int idle = 0; idle < 5; ) { // milliseconds without progress: the rest is in use
      long left = BYTES.get();
      if (left <= goal) {
        break;
      }
      idle = left < before ? 0 : idle + 1;
      before = left;
      try {
        Thread.sleep(1);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        break;
      }
    }
    LIMIT.set(Math.max(MIN_LIMIT, 2 * BYTES.get()));
  }

  /**
   * Frees the memory, unless other objects share it, after pending work on it has ended. A second
   * call does nothing; any other method then throws {@link IllegalStateException}.
   */
  @Override
  public void close() {
    handle = 0;
    cleanable.clean();
  }

  /**
   * Whether {@link #close} was called.
   *
   * @return true after the first call of close
   */
  public boolean isClosed() {
    return handle == 0;
  }
}
