package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * A model exported by {@code HybridBlock.export()} or by MXNet 1.x: a graph, loops and branches
 * included, with its parameters. Any number of threads may run it at once.
 *
 * <p>Its files contain no code that is executed; a damaged file is an error.
 */
public final class Model extends NativeObject {
  private final List<String> inputs;
  private final List<String> outputs;
  private final List<String> parameters;

  private Model(long handle) {
    super(handle, 0, Native::modelFree);
    inputs = List.of(Native.texts(Native.modelInputNames(this)));
    outputs = List.of(Native.texts(Native.modelOutputNames(this)));
    parameters = List.of(Native.texts(Native.modelParameterNames(this)));
  }

  /**
   * Loads {@code PREFIX-symbol.json} and {@code PREFIX-0000.params}.
   *
   * @param prefix the argument of {@code export()}
   * @return the model, to be closed
   * @throws FileError if a file cannot be read
   * @throws FormatError if a file is damaged
   */
  public static Model load(String prefix) {
    return load(Path.of(prefix + "-symbol.json"), Path.of(prefix + "-0000.params"));
  }

  /**
   * Loads a model.
   *
   * @param symbol the file of the graph
   * @param params the file of the parameters; null if the graph has none
   * @return the model, to be closed
   * @throws FileError if a file cannot be read
   * @throws FormatError if a file is damaged
   */
  public static Model load(Path symbol, Path params) {
    byte[] paramsPath = params == null ? null : Native.utf8(params.toString());
    return new Model(Native.modelLoad(Native.utf8(symbol.toString()), paramsPath));
  }

  /**
   * Loads a model from the contents of its files, for example resources of a jar.
   *
   * @param symbol the file of the graph
   * @param params the file of the parameters; null if the graph has none
   * @return the model, to be closed
   * @throws FormatError if one is damaged
   */
  public static Model load(byte[] symbol, byte[] params) {
    return new Model(Native.modelLoadFromMemory(symbol, params));
  }

  /**
   * The names of the inputs: the variables of the graph that have no value among the parameters.
   *
   * @return the names, in the order in which {@link #predict(NDArray...)} takes their arrays
   */
  public List<String> inputs() {
    return inputs;
  }

  /**
   * The names of the outputs.
   *
   * @return the names, in the order of {@link #predict(NDArray...)}
   */
  public List<String> outputs() {
    return outputs;
  }

  /**
   * The shapes and dtypes of the inputs in the file; unknown if the file does not have them.
   *
   * @return one spec per input
   */
  public List<TensorSpec> inputSpecs() {
    return TensorSpec.read(Native.modelInputSpecs(this));
  }

  /**
   * The parameters: the arrays that the model reads. Writes to them take effect from the next run
   * on.
   *
   * @return the parameters by name, to be closed
   */
  public Map<String, NDArray> parameters() {
    Map<String, NDArray> result = new LinkedHashMap<>();
    for (int i = 0; i < parameters.size(); i++) {
      result.put(parameters.get(i), NDArray.takeView(Native.modelParameter(this, i)));
    }
    return result;
  }

  /**
   * The names of the parameters that are states, such as running means: runs inside {@link
   * Autograd#record()} update them, and gradients do not reach them.
   *
   * @return the names, in the order of the graph
   */
  public List<String> states() {
    List<String> names = new ArrayList<>();
    for (long index : Native.modelStates(this)) {
      names.add(parameters.get((int) index));
    }
    return names;
  }

  /**
   * Shapes and dtypes of the parameters.
   *
   * @return specs by name, in the order of the graph
   */
  public Map<String, TensorSpec> parameterSpecs() {
    List<TensorSpec> specs = TensorSpec.read(Native.modelParameterSpecs(this));
    Map<String, TensorSpec> result = new LinkedHashMap<>();
    for (int i = 0; i < parameters.size(); i++) {
      result.put(parameters.get(i), specs.get(i));
    }
    return result;
  }

  /**
   * One parameter: the array that the model reads.
   *
   * @param name its name
   * @return the array, to be closed
   * @throws ValueError if there is no such parameter
   */
  public NDArray parameter(String name) {
    int index = parameters.indexOf(name);
    if (index < 0) {
      throw new ValueError("Model.parameter: expected one of " + parameters + ", got " + name + ".");
    }
    return NDArray.takeView(Native.modelParameter(this, index));
  }

  /**
   * Moves the model: its parameters become copies on the device, and runs take their inputs there
   * from now on. A loaded model is on the CPU. Arrays of {@link #parameters}, sessions, batchers and
   * trainers that were made before keep the parameters of before, so move it first.
   *
   * @param device the device
   * @return this
   * @throws UnsupportedError if the process has no such GPU; then nothing is moved
   */
  public Model to(Device device) {
    Native.modelToDevice(this, device.type(), device.id());
    return this;
  }

  /**
   * The device of the parameters.
   *
   * @return the device
   */
  public Device device() {
    return Device.take(Native.modelDevice(this));
  }

  /**
   * Shapes and dtypes of the outputs, without running the model.
   *
   * @param inputs specs of the inputs, completely known
   * @return one per output
   * @throws ShapeError if the inputs do not fit the graph
   */
  public List<TensorSpec> infer(TensorSpec... inputs) {
    return TensorSpec.read(Native.modelInfer(this, TensorSpec.numbers(inputs)));
  }

  /**
   * Runs the model. The call returns before the work is done; reading an output waits for it. Inside
   * {@link Autograd#record()} it is recorded, and states such as running means are updated.
   *
   * @param inputs one array per input, in the order of {@link #inputs()}, on {@link #device}
   * @return the outputs, on the same device, to be closed
   * @throws HybridNetError if the inputs do not fit
   */
  public NDArray[] predict(NDArray... inputs) {
    return NDArray.take(Native.modelRun(this, inputs));
  }

  /**
   * Runs the model on inputs by name.
   *
   * @param inputs the arrays by the names of {@link #inputs()}
   * @return the outputs by name, to be closed
   * @throws ValueError if a name is missing or unknown
   * @throws HybridNetError if the inputs do not fit
   */
  public Map<String, NDArray> predict(Map<String, NDArray> inputs) {
    if (!inputs.keySet().equals(Set.copyOf(this.inputs))) {
      throw new ValueError("Model.predict: expected the inputs " + this.inputs + ", got " + inputs.keySet() + ".");
    }
    NDArray[] results = predict(this.inputs.stream().map(inputs::get).toArray(NDArray[]::new));
    Map<String, NDArray> named = new LinkedHashMap<>();
    for (int i = 0; i < results.length; i++) {
      named.put(outputs.get(i), results[i]);
    }
    return named;
  }

  /**
   * Runs a model of one float32 input, on whatever device it is, and reads its first output, which
   * is float32.
   *
   * @param values the input's values, row-major
   * @param shape the input's sizes
   * @return the output's values, row-major
   * @throws HybridNetError if the input does not fit
   */
  public float[] predict(float[] values, long... shape) {
    try (NDArray given = NDArray.of(values, shape);
        NDArray input = given.to(device())) {
      NDArray[] results = predict(input);
      try {
        return results[0].toFloats();
      } finally {
        for (NDArray result : results) {
          result.close();
        }
      }
    }
  }

  /**
   * Runs the model and writes the outputs to existing arrays with the shapes and dtypes of the
   * outputs.
   *
   * @param inputs one array per input
   * @param outputs the arrays to write, one per output
   * @throws HybridNetError if the arrays do not fit
   */
  public void predictInto(NDArray[] inputs, NDArray... outputs) {
    Native.modelRunInto(this, inputs, outputs);
  }

  /**
   * Binds arrays to the model, for predictions that allocate nothing: see {@link Session}.
   *
   * @param inputs arrays that runs read, one per input, of the shapes and dtypes of all runs
   * @return a session with new arrays for the outputs, to be closed
   * @throws HybridNetError if the inputs do not fit, or sizes inside the model depend on values
   */
  public Session bind(NDArray... inputs) {
    return new Session(Native.sessionCreate(this, inputs, null), outputs.size());
  }

  /**
   * Binds arrays to the model, for predictions that allocate nothing: see {@link Session}.
   *
   * @param inputs arrays that runs read, one per input, of the shapes and dtypes of all runs
   * @param outputs arrays that runs write, one per output
   * @return a session, to be closed
   * @throws HybridNetError if the arrays do not fit, or sizes inside the model depend on values
   */
  public Session bindInto(NDArray[] inputs, NDArray... outputs) {
    Objects.requireNonNull(outputs, "outputs is null");
    return new Session(Native.sessionCreate(this, inputs, outputs), this.outputs.size());
  }

  /**
   * Gathers requests of many threads into calls of this model: see {@link Batcher}. First the model
   * is run on generated rows, to check it.
   *
   * @param options the rules by which requests share calls
   * @param inputs shapes and dtypes of the inputs of requests, with an arbitrary first size; none:
   *     those in the file
   * @return a batcher, to be closed
   * @throws HybridNetError if outputs do not have the rows of the inputs, or rows depend on each other
   */
  public Batcher batcher(Batcher.Options options, TensorSpec... inputs) {
    long micros = options.maxWait().toNanos() / 1000;
    return new Batcher(
        Native.batcherCreate(
            this, TensorSpec.numbers(inputs), options.maxRows(), micros, options.maxWaiting(), options.calls()),
        outputs.size());
  }

  /**
   * Writes {@code PREFIX-symbol.json} and {@code PREFIX-0000.params} with the current values of the
   * parameters.
   *
   * @param prefix path and beginning of the file names
   * @throws FileError if a file cannot be written
   */
  public void save(String prefix) {
    Native.modelSave(this, Native.utf8(prefix + "-symbol.json"), Native.utf8(prefix + "-0000.params"));
  }

  /**
   * Sets which values gradients recompute instead of keeping them, from the next run on.
   *
   * @param remat "auto" (the default), "none", or the largest number of bytes that a run keeps
   * @throws ParamError for another text
   */
  public void setRemat(String remat) {
    Native.modelSetRemat(this, Native.utf8(remat));
  }

  /**
   * A readable list of the instructions of the latest run in order, with implementation, memory and
   * node.
   *
   * @return the text; empty before the first run
   */
  public String planText() {
    return new String(Native.modelPlanText(this), UTF_8);
  }

  @Override
  public String toString() {
    return "Model " + inputs + " -> " + outputs;
  }
}
