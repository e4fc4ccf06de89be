package org.hybridnet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** The shape and the dtype of a tensor; parts may be unknown. */
public final class TensorSpec {
  private final long[] shape;
  private final DType dtype;

  /**
   * A shape and a dtype.
   *
   * @param dtype the element type, or null if unknown
   * @param shape the sizes, -1 for unknown ones; null if their number is unknown
   */
  public TensorSpec(DType dtype, long... shape) {
    this.dtype = dtype;
    this.shape = shape == null ? null : shape.clone();
  }

  /**
   * The sizes.
   *
   * @return a copy of the sizes, -1 for unknown ones; null if their number is unknown
   */
  public long[] shape() {
    return shape == null ? null : shape.clone();
  }

  /**
   * The element type.
   *
   * @return the dtype, or null if unknown
   */
  public DType dtype() {
    return dtype;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TensorSpec spec && dtype == spec.dtype && Arrays.equals(shape, spec.shape);
  }

  @Override
  public int hashCode() {
    return Objects.hash(dtype, Arrays.hashCode(shape));
  }

  /** For example {@code float32 (2, 3)}; a question mark stands for an unknown part. */
  @Override
  public String toString() {
    return (dtype == null ? "?" : dtype) + " " + (shape == null ? "?" : Attributes.text(shape).replace("-1", "?"));
  }

  /** Returns {dtype, ndim, sizes...} of each spec, one after the other, for the native library. */
  static long[] numbers(TensorSpec... specs) {
    List<Long> numbers = new ArrayList<>();
    for (TensorSpec spec : specs) {
      numbers.add(spec.dtype == null ? -1L : spec.dtype.code());
      numbers.add(spec.shape == null ? -1L : spec.shape.length);
      for (int i = 0; spec.shape != null && i < spec.shape.length; i++) {
        numbers.add(spec.shape[i]);
      }
    }
    return numbers.stream().mapToLong(Long::longValue).toArray();
  }

  /** Reads specs in the form of {@link #numbers}. */
  static List<TensorSpec> read(long[] numbers) {
    List<TensorSpec> specs = new ArrayList<>();
    for (int at = 0; at < numbers.length; ) {
      DType dtype = numbers[at] < 0 ? null : DType.ofCode((int) numbers[at]);
      int ndim = (int) numbers[at + 1];
      at += 2;
      long[] shape = ndim < 0 ? null : Arrays.copyOfRange(numbers, at, at + ndim);
      specs.add(new TensorSpec(dtype, shape));
      at += Math.max(ndim, 0);
    }
    return specs;
  }
}
