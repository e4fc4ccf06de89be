package org.hybridnet;

import java.util.List;
import java.util.Map;

/**
 * An operator with its attributes, looked up and checked once, for many calls from any number of
 * threads. Names and attributes are the same as in MXNet's {@code mx.nd}; calls return before the
 * work is done, and reading a result waits for it.
 */
public final class Operator extends NativeObject {
  private final String name;

  private Operator(String name, long handle) {
    super(handle, 0, Native::operatorFree);
    this.name = name;
  }

  /**
   * Finds an operator that needs no attributes, such as {@code exp} or {@code broadcast_add}.
   *
   * @param name its name
   * @return the operator, to be closed
   * @throws HybridNetError if there is no such operator or an attribute is missing
   */
  public static Operator of(String name) {
    return of(name, Map.of());
  }

  /**
   * Finds an operator.
   *
   * @param name its name, such as {@code FullyConnected}
   * @param attributes numbers, booleans, texts, a {@link DType}, null for Python's None, or arrays
   *     and collections of them for tuples
   * @return the operator, to be closed
   * @throws HybridNetError if there is no such operator, or an attribute is missing, unknown or
   *     wrong
   */
  public static Operator of(String name, Map<String, ?> attributes) {
    Attributes texts = new Attributes(attributes);
    return new Operator(name, Native.operatorPrepare(Native.utf8(name), texts.keys, texts.values));
  }

  /**
   * The names of all operators.
   *
   * @return the names
   */
  public static List<String> names() {
    return List.of(Native.texts(Native.operatorNames()));
  }

  /**
   * Finds an operator and calls it once.
   *
   * @param name its name
   * @param attributes its attributes: see {@link #of(String, Map)}
   * @param inputs its inputs, in order
   * @return its outputs, to be closed
   * @throws HybridNetError if the operator, its attributes or its inputs are wrong
   */
  public static NDArray[] invoke(String name, Map<String, ?> attributes, NDArray... inputs) {
    Attributes texts = new Attributes(attributes);
    return NDArray.take(Native.invoke(Native.utf8(name), texts.keys, texts.values, inputs));
  }

  /**
   * The operator's name.
   *
   * @return the argument of {@link #of(String)}
   */
  public String name() {
    return name;
  }

  /**
   * The number of results of a call.
   *
   * @param inputs the number of its inputs
   * @return the number of arrays that {@link #call(NDArray...)} returns
   * @throws ValueError if the operator takes another number of inputs
   */
  public int numOutputs(int inputs) {
    return Native.operatorNumOutputs(this, inputs);
  }

  /**
   * Runs the operator.
   *
   * @param inputs its inputs, in order
   * @return its outputs, to be closed
   * @throws HybridNetError if the inputs do not fit
   */
  public NDArray[] call(NDArray... inputs) {
    return NDArray.take(Native.operatorCall(this, inputs));
  }

  /**
   * Runs the operator and writes the outputs to existing arrays with the shapes and dtypes of the
   * outputs; they may be among the inputs.
   *
   * @param inputs its inputs, in order
   * @param outputs the arrays to write
   * @throws HybridNetError if the arrays do not fit
   */
  public void callInto(NDArray[] inputs, NDArray... outputs) {
    Native.operatorCallInto(this, inputs, outputs);
  }

  @Override
  public String toString() {
    return "Operator " + name;
  }
}
