package org.hybridnet;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * A tensor: numbers of one {@link DType} in row-major order. Its values may still be in computation;
 * reading them waits.
 *
 * <p>The memory is outside Java's heap and is freed by {@link #close}, or after the garbage
 * collector has found the array unreachable.
 */
public final class NDArray extends NativeObject {
  private NDArray(long handle, long bytes) {
    super(handle, bytes, Native::arrayFree);
  }

  /** Makes arrays from {handle, bytes} pairs. */
  static NDArray[] take(long[] pairs) {
    NDArray[] arrays = new NDArray[pairs.length / 2];
    for (int i = 0; i < arrays.length; i++) {
      arrays[i] = new NDArray(pairs[2 * i], pairs[2 * i + 1]);
    }
    return arrays;
  }

  static NDArray takeOne(long[] pair) {
    return new NDArray(pair[0], pair[1]);
  }

  /** Makes an array for memory that another array owns: its bytes are not counted again. */
  static NDArray takeView(long[] pair) {
    return new NDArray(pair[0], 0);
  }

  // --- new arrays

  /**
   * A new array of zeros.
   *
   * @param dtype the element type
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ShapeError if a size is negative
   */
  public static NDArray zeros(DType dtype, long... shape) {
    return zeros(Device.cpu(), dtype, shape);
  }

  /**
   * A new array of zeros on a device.
   *
   * @param device where its memory is
   * @param dtype the element type
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ShapeError if a size is negative
   * @throws UnsupportedError if the process has no such GPU
   */
  public static NDArray zeros(Device device, DType dtype, long... shape) {
    return takeOne(Native.arrayCreate(device.type(), device.id(), shape, dtype.code()));
  }

  /**
   * A new float32 array.
   *
   * @param values its values, row-major; they are copied
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if there are more or fewer values than the shape holds
   */
  public static NDArray of(float[] values, long... shape) {
    return takeOne(Native.arrayFrom(values, Native.FLOATS, shape, DType.FLOAT32.code()));
  }

  /**
   * A new float64 array.
   *
   * @param values its values, row-major; they are copied
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if there are more or fewer values than the shape holds
   */
  public static NDArray of(double[] values, long... shape) {
    return takeOne(Native.arrayFrom(values, Native.DOUBLES, shape, DType.FLOAT64.code()));
  }

  /**
   * A new int32 array.
   *
   * @param values its values, row-major; they are copied
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if there are more or fewer values than the shape holds
   */
  public static NDArray of(int[] values, long... shape) {
    return takeOne(Native.arrayFrom(values, Native.INTS, shape, DType.INT32.code()));
  }

  /**
   * A new int64 array.
   *
   * @param values its values, row-major; they are copied
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if there are more or fewer values than the shape holds
   */
  public static NDArray of(long[] values, long... shape) {
    return takeOne(Native.arrayFrom(values, Native.LONGS, shape, DType.INT64.code()));
  }

  /**
   * A new array of any dtype from the bytes of its memory, in this machine's byte order.
   *
   * @param dtype the element type: for INT8, UINT8 and BOOL each byte is a value
   * @param bytes the memory, row-major; it is copied
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if there are more or fewer bytes than the array has
   */
  public static NDArray ofBytes(DType dtype, byte[] bytes, long... shape) {
    return takeOne(Native.arrayFrom(bytes, Native.BYTES, shape, dtype.code()));
  }

  /**
   * An array over the remaining bytes of a direct buffer, without a copy: writes to one are visible
   * in the other. The buffer is kept from the garbage collector while the array lives.
   *
   * @param buffer a direct buffer in this machine's byte order, {@code ByteOrder.nativeOrder()}, not
   *     read-only, whose position is aligned for the elements
   * @param dtype the element type
   * @param shape the sizes; none for a scalar
   * @return the array
   * @throws ValueError if the buffer does not meet these conditions, or has another size
   */
  public static NDArray wrap(ByteBuffer buffer, DType dtype, long... shape) {
    if (!buffer.isDirect() || buffer.isReadOnly()) {
      throw new ValueError(
          "NDArray.wrap: expected a direct buffer that can be written, got "
              + buffer
              + ".\n  Fix: ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder())");
    }
    if (buffer.order() != ByteOrder.nativeOrder()) {
      throw new ValueError(
          "NDArray.wrap: expected a buffer of this machine's byte order, "
              + ByteOrder.nativeOrder()
              + ", got "
              + buffer.order()
              + ".\n  Fix: buffer.order(ByteOrder.nativeOrder()) before values are written");
    }
    return takeView(Native.arrayWrap(buffer, buffer.position(), buffer.remaining(), shape, dtype.code()));
  }

  /**
   * A sparse array that stores some rows; the others are zero.
   *
   * @param data the stored rows, one for each index; the memory is shared
   * @param indices the indices of the rows, int64, in any order; rows with equal index are summed
   * @param shape the sizes of the whole array
   * @return the array
   * @throws HybridNetError if sizes do not fit together or an index is out of bounds
   */
  public static NDArray rowSparse(NDArray data, NDArray indices, long... shape) {
    return takeOne(Native.arraySparse(Native.utf8("row_sparse"), shape, data, indices, null));
  }

  /**
   * A sparse matrix in compressed rows.
   *
   * @param data the stored values, row after row; the memory is shared
   * @param indices the column of each value, int64
   * @param indptr the position of the first value of each row, int64, and the number of values
   * @param shape rows and columns of the matrix
   * @return the array
   * @throws HybridNetError if sizes do not fit together or an index is out of bounds
   */
  public static NDArray csr(NDArray data, NDArray indices, NDArray indptr, long... shape) {
    Objects.requireNonNull(indptr, "indptr is null");
    return takeOne(Native.arraySparse(Native.utf8("csr"), shape, data, indices, indptr));
  }

  // --- properties

  /**
   * The storage type.
   *
   * @return {@code default} (dense), {@code row_sparse} or {@code csr}
   */
  public String storage() {
    return new String(Native.arrayStorage(this), StandardCharsets.UTF_8);
  }

  /**
   * A part of a sparse array: see {@link #rowSparse} and {@link #csr}.
   *
   * @param name {@code data}, {@code indices} or {@code indptr}
   * @return the part; data shares the memory, the others are copies
   * @throws HybridNetError if the array has no such part
   */
  public NDArray part(String name) {
    return takeView(Native.arrayPart(this, Native.utf8(name)));
  }

  /**
   * The values in another storage type.
   *
   * @param storage {@code default}, {@code row_sparse} or {@code csr}
   * @return a new array
   */
  public NDArray castStorage(String storage) {
    return takeOne(Native.arrayCastStorage(this, Native.utf8(storage)));
  }

  /**
   * The values as a dense array.
   *
   * @return a new array
   */
  public NDArray toDense() {
    return castStorage("default");
  }

  /**
   * The sizes.
   *
   * @return the sizes; empty for a scalar
   */
  public long[] shape() {
    return Native.arrayShape(this);
  }

  /**
   * The element type.
   *
   * @return the dtype
   */
  public DType dtype() {
    return DType.ofCode(Native.arrayDType(this));
  }

  /**
   * The device of the memory.
   *
   * @return the device
   */
  public Device device() {
    return Device.take(Native.arrayDevice(this));
  }

  /**
   * The number of elements.
   *
   * @return the product of the sizes
   */
  public long size() {
    return Native.arraySize(this);
  }

  /**
   * Waits until the values are computed.
   *
   * @return this
   * @throws HybridNetError if their computation failed
   */
  public NDArray await() {
    Native.arrayWait(this);
    return this;
  }

  // --- values

  /**
   * The values of a float32 array.
   *
   * @return a copy of them, row-major
   * @throws DTypeError if the array is of another dtype
   */
  public float[] toFloats() {
    float[] values = new float[length("toFloats", 1)];
    copyTo(values);
    return values;
  }

  /**
   * The values of a float64 array.
   *
   * @return a copy of them, row-major
   * @throws DTypeError if the array is of another dtype
   */
  public double[] toDoubles() {
    double[] values = new double[length("toDoubles", 1)];
    copyTo(values);
    return values;
  }

  /**
   * The values of an int32 array.
   *
   * @return a copy of them, row-major
   * @throws DTypeError if the array is of another dtype
   */
  public int[] toInts() {
    int[] values = new int[length("toInts", 1)];
    copyTo(values);
    return values;
  }

  /**
   * The values of an int64 array.
   *
   * @return a copy of them, row-major
   * @throws DTypeError if the array is of another dtype
   */
  public long[] toLongs() {
    long[] values = new long[length("toLongs", 1)];
    copyTo(values);
    return values;
  }

  /**
   * The memory of an array of any dtype.
   *
   * @return a copy of it, row-major, in this machine's byte order
   */
  public byte[] toBytes() {
    byte[] values = new byte[length("toBytes", dtype().bytes())];
    copyTo(values);
    return values;
  }

  private int length(String method, int bytes) {
    long length = size() * bytes;
    if (length > Integer.MAX_VALUE) {
      throw new ValueError(
          "NDArray." + method + ": expected at most 2147483647 values, as much as an array of Java holds, got "
              + length + ".\n  Fix: read slices of it.");
    }
    return (int) length;
  }

  /**
   * Copies the values of a float32 array.
   *
   * @param target receives the values, row-major; its length is the array's size
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyTo(float[] target) {
    Native.arrayRead(this, target, Native.FLOATS);
  }

  /**
   * Copies the values of a float64 array.
   *
   * @param target receives the values, row-major; its length is the array's size
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyTo(double[] target) {
    Native.arrayRead(this, target, Native.DOUBLES);
  }

  /**
   * Copies the values of an int32 array.
   *
   * @param target receives the values, row-major; its length is the array's size
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyTo(int[] target) {
    Native.arrayRead(this, target, Native.INTS);
  }

  /**
   * Copies the values of an int64 array.
   *
   * @param target receives the values, row-major; its length is the array's size
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyTo(long[] target) {
    Native.arrayRead(this, target, Native.LONGS);
  }

  /**
   * Copies the memory of an array of any dtype.
   *
   * @param target receives the bytes; its length is the array's size in bytes
   * @throws ValueError if it has another length
   */
  public void copyTo(byte[] target) {
    Native.arrayRead(this, target, Native.BYTES);
  }

  /**
   * Overwrites the values of a float32 array.
   *
   * @param source the values, row-major
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyFrom(float[] source) {
    Native.arrayWrite(this, source, Native.FLOATS);
  }

  /**
   * Overwrites the values of a float64 array.
   *
   * @param source the values, row-major
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyFrom(double[] source) {
    Native.arrayWrite(this, source, Native.DOUBLES);
  }

  /**
   * Overwrites the values of an int32 array.
   *
   * @param source the values, row-major
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyFrom(int[] source) {
    Native.arrayWrite(this, source, Native.INTS);
  }

  /**
   * Overwrites the values of an int64 array.
   *
   * @param source the values, row-major
   * @throws HybridNetError if dtype or size do not fit
   */
  public void copyFrom(long[] source) {
    Native.arrayWrite(this, source, Native.LONGS);
  }

  /**
   * Overwrites the memory of an array of any dtype.
   *
   * @param source the bytes, row-major, in this machine's byte order
   * @throws ValueError if there are more or fewer bytes than the array has
   */
  public void copyFrom(byte[] source) {
    Native.arrayWrite(this, source, Native.BYTES);
  }

  /**
   * The array's memory as a direct buffer, without a copy, in this machine's byte order. The memory
   * stays valid as long as the buffer, or one made from it, is reachable, also after {@link #close}.
   * The buffer does not wait for operators that are called later: read or write it only while no
   * operator runs on the array.
   *
   * @return a buffer of the array's size in bytes
   * @throws UnsupportedError if the array is on a GPU
   * @throws ValueError if the array is larger than the largest buffer, 2147483647 bytes
   */
  public ByteBuffer buffer() {
    long handle = Native.arrayShare(this)[0];
    try {
      ByteBuffer buffer = Native.arrayBuffer(handle);
      freeWithout(buffer, handle, 0, Native::arrayFree); // buffers made from this one refer to it
      return buffer.order(ByteOrder.nativeOrder());
    } catch (RuntimeException failure) {
      Native.arrayFree(handle);
      throw failure;
    }
  }

  // --- views and copies

  /**
   * Another object for the same array, to be closed separately.
   *
   * @return the array
   */
  public NDArray share() {
    return takeView(Native.arrayShare(this));
  }

  /**
   * A new array with the same values.
   *
   * @return the copy
   */
  public NDArray copy() {
    return takeOne(Native.arrayCopy(this));
  }

  /**
   * The values on a device. While gradients are recorded they go back the same way.
   *
   * @param device the device
   * @return a copy there, or, if the array is there already, another object for the same array; to be
   *     closed separately in both cases
   * @throws UnsupportedError if the process has no such GPU, or the array is sparse
   */
  public NDArray to(Device device) {
    return device().equals(device)
        ? share()
        : takeOne(Native.arrayCopyToDevice(this, device.type(), device.id()));
  }

  /**
   * An array over the same memory through which gradients do not pass.
   *
   * @return the array
   */
  public NDArray detach() {
    return takeView(Native.arrayDetach(this));
  }

  /**
   * A view of the same memory with another shape.
   *
   * @param shape sizes with the same product
   * @return the view
   * @throws ShapeError if the product differs
   */
  public NDArray reshape(long... shape) {
    return takeView(Native.arrayReshape(this, shape));
  }

  /**
   * A view of rows along the first axis, in the same memory.
   *
   * @param begin the first row
   * @param end the row after the last one
   * @return the view
   * @throws HybridNetError if there are no such rows
   */
  public NDArray slice(long begin, long end) {
    return takeView(Native.arraySlice(this, begin, end));
  }

  /**
   * The values converted to another element type.
   *
   * @param dtype the element type
   * @return a new array
   */
  public NDArray asType(DType dtype) {
    return Operator.invoke("Cast", Map.of("dtype", dtype), this)[0];
  }

  // --- arithmetic; operators in Kotlin

  /**
   * The sum {@code this + other}, broadcast along axes of size 1.
   *
   * @param other the other summand
   * @return a new array
   */
  public NDArray plus(NDArray other) {
    return binary("broadcast_add", other);
  }

  /**
   * The sum {@code this + scalar}.
   *
   * @param scalar the other summand
   * @return a new array
   */
  public NDArray plus(double scalar) {
    return scalar("_plus_scalar", scalar);
  }

  /**
   * The difference {@code this - other}, broadcast along axes of size 1.
   *
   * @param other the subtrahend
   * @return a new array
   */
  public NDArray minus(NDArray other) {
    return binary("broadcast_sub", other);
  }

  /**
   * The difference {@code this - scalar}.
   *
   * @param scalar the subtrahend
   * @return a new array
   */
  public NDArray minus(double scalar) {
    return scalar("_minus_scalar", scalar);
  }

  /**
   * The elementwise product {@code this * other}, broadcast along axes of size 1.
   *
   * @param other the other factor
   * @return a new array
   */
  public NDArray times(NDArray other) {
    return binary("broadcast_mul", other);
  }

  /**
   * The product {@code this * scalar}.
   *
   * @param scalar the other factor
   * @return a new array
   */
  public NDArray times(double scalar) {
    return scalar("_mul_scalar", scalar);
  }

  /**
   * The elementwise quotient {@code this / other}, broadcast along axes of size 1.
   *
   * @param other the divisor
   * @return a new array
   */
  public NDArray div(NDArray other) {
    return binary("broadcast_div", other);
  }

  /**
   * The quotient {@code this / scalar}.
   *
   * @param scalar the divisor
   * @return a new array
   */
  public NDArray div(double scalar) {
    return scalar("_div_scalar", scalar);
  }

  /**
   * The negative {@code -this}.
   *
   * @return a new array
   */
  public NDArray unaryMinus() {
    return Operator.invoke("negative", Map.of(), this)[0];
  }

  private NDArray binary(String operator, NDArray other) {
    return Operator.invoke(operator, Map.of(), this, other)[0];
  }

  private NDArray scalar(String operator, double scalar) {
    return Operator.invoke(operator, Map.of("scalar", scalar), this)[0];
  }

  // --- gradients

  /**
   * Makes the array a variable whose gradient {@link Autograd#backward(NDArray...)} computes: each
   * call replaces the previous gradient.
   */
  public void attachGrad() {
    attachGrad("write");
  }

  /**
   * Makes the array a variable whose gradient {@link Autograd#backward(NDArray...)} computes.
   *
   * @param gradReq {@code write}: each call replaces the gradient; {@code add}: it adds to it; {@code
   *     null} (the text): the array has no gradient
   * @throws HybridNetError if it is another text, or the dtype has no gradients
   */
  public void attachGrad(String gradReq) {
    attachGrad(gradReq, "default");
  }

  /**
   * The same with a gradient of another storage type: {@code row_sparse} stores only rows with a
   * gradient, and trainers whose setting {@code lazy_update} is true update only these rows.
   *
   * @param gradReq {@code write}, {@code add} or {@code null}
   * @param storage {@code default}, {@code row_sparse} or {@code csr}
   */
  public void attachGrad(String gradReq, String storage) {
    Native.attachGrad(this, Native.utf8(gradReq), Native.utf8(storage));
  }

  /**
   * The gradient that the last backward pass computed.
   *
   * @return the array that holds it
   * @throws GradientError if {@link #attachGrad()} was not called
   */
  public NDArray grad() {
    return takeView(Native.grad(this));
  }

  /** Computes the gradients of this array's sum with respect to the variables it depends on. */
  public void backward() {
    Autograd.backward(this);
  }

  // --- files

  /**
   * Reads a file of named arrays ({@code .params}); sparse ones stay sparse.
   *
   * @param path the file
   * @return the arrays by name, in the order of the file; of arrays with equal names the last; a
   *     file without names gives the names 0, 1, ...
   * @throws HybridNetError if the file is missing or damaged
   */
  public static Map<String, NDArray> load(Path path) {
    Object[] loaded = Native.arraysLoad(Native.utf8(path.toString()));
    NDArray[] arrays = take((long[]) loaded[0]);
    String[] names = loaded[1] == null ? null : Native.texts((byte[][]) loaded[1]);
    Map<String, NDArray> result = new LinkedHashMap<>();
    for (int i = 0; i < arrays.length; i++) {
      NDArray before = result.put(names == null ? Integer.toString(i) : names[i], arrays[i]);
      if (before != null) {
        before.close();
      }
    }
    return result;
  }

  /**
   * Reads a file of arrays ({@code .params}) with or without names.
   *
   * @param path the file
   * @return the arrays in the order of the file
   * @throws HybridNetError if the file is missing or damaged
   */
  public static List<NDArray> loadList(Path path) {
    return List.of(take((long[]) Native.arraysLoad(Native.utf8(path.toString()))[0]));
  }

  /**
   * Writes a file of arrays without names, which Python reads as a list.
   *
   * @param path the file; an existing one is replaced
   * @param arrays the arrays
   * @throws HybridNetError if the file cannot be written
   */
  public static void save(Path path, List<NDArray> arrays) {
    Native.arraysSave(Native.utf8(path.toString()), arrays.toArray(new NDArray[0]), null);
  }

  /**
   * Writes a file of named arrays ({@code .params}), which Python reads by {@code mx.nd.load}.
   *
   * @param path the file; an existing one is replaced
   * @param arrays the arrays by name
   * @throws HybridNetError if the file cannot be written
   */
  public static void save(Path path, Map<String, NDArray> arrays) {
    byte[][] names = arrays.keySet().stream().map(Native::utf8).toArray(byte[][]::new);
    Native.arraysSave(Native.utf8(path.toString()), arrays.values().toArray(new NDArray[0]), names);
  }

  /** Element type and sizes, for example {@code NDArray float32 (2, 3)}; no values. */
  @Override
  public String toString() {
    if (isClosed()) {
      return "NDArray (closed)";
    }
    return "NDArray " + new TensorSpec(dtype(), shape());
  }
}
