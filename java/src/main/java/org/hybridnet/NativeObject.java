package org.hybridnet;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;

/**
 * An object whose memory lies outside Java's heap. {@link #close} frees it at once; what is
 * forgotten is freed after the garbage collector has found it.
 */
public abstract sealed class NativeObject implements AutoCloseable
    permits NDArray, Model, Operator, Session, Batcher, Trainer {
  private static final Cleaner CLEANER = Cleaner.create();
  // Of what Java has not freed yet. The collector does not see it, so that arrays that are forgotten
  // would fill the machine's memory while Java's heap is nearly empty.
  private static final AtomicLong BYTES = new AtomicLong();
  private static final long MIN_LIMIT = 256L << 20;
  private static final AtomicLong LIMIT = new AtomicLong(MIN_LIMIT);

  // Read by the native library: 0 after close().
  private volatile long handle;
  private final Cleaner.Cleanable cleanable;

  NativeObject(long handle, long bytes, LongConsumer free) {
    this.handle = handle;
    cleanable = freeWithout(this, handle, bytes, free);
  }

  /** Calls free(handle) once: when close() asks for it, or when owner cannot be reached any more. */
  static Cleaner.Cleanable freeWithout(Object owner, long handle, long bytes, LongConsumer free) {
    long all = BYTES.addAndGet(bytes);
    long limit = LIMIT.get();
    if (bytes > 0 && all > limit && LIMIT.compareAndSet(limit, 2 * all)) {
      System.gc();
    }
    return CLEANER.register(
        owner,
        () -> {
          free.accept(handle);
          long left = BYTES.addAndGet(-bytes);
          long now = LIMIT.get();
          if (now > MIN_LIMIT && left < now / 4) {
            LIMIT.compareAndSet(now, Math.max(MIN_LIMIT, now / 2));
          }
        });
  }

  /**
   * Frees the memory, unless other objects share it. A second call does nothing; any other method
   * then throws {@link IllegalStateException}. Work that still runs on it ends first.
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
