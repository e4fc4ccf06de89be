package org.hybridnet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/** What is known of a tensor: its shape and its dtype. */
public final class TensorSpec {
  private final long[] shape;
  private final DType dtype;

  /**
   * A shape and a dtype.
   *
   * @param dtype the element type, or null if it is not known
   * @param shape the sizes, -1 for those that are not known; null if not even their number is known
   */
  public TensorSpec(DType dtype, long... shape) {
    this.dtype = dtype;
    this.shape = shape == null ? null : shape.clone();
  }

  /**
   * The sizes.
   *
   * @return a copy of them, -1 for those that are not known; null if not even their number is known
   */
  public long[] shape() {
    return shape == null ? null : shape.clone();
  }

  /**
   * The element type.
   *
   * @return the dtype, or null if it is not known
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

  /** For example {@code float32 (2, 3)}; a question mark stands for what is not known. */
  @Override
  public String toString() {
    return (dtype == null ? "?" : dtype) + " " + (shape == null ? "?" : Attributes.text(shape).replace("-1", "?"));
  }

  /** {dtype, ndim, sizes...} of each, one after the other, as the native library takes them. */
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

  /** Specs as {@link #numbers} writes them. */
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
