import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.hybridnet.Autograd;
import org.hybridnet.Batcher;
import org.hybridnet.DType;
import org.hybridnet.Device;
import org.hybridnet.Model;
import org.hybridnet.NDArray;
import org.hybridnet.Operator;
import org.hybridnet.Session;
import org.hybridnet.TensorSpec;
import org.hybridnet.Trainer;
import org.hybridnet.UnsupportedError;
import org.hybridnet.ValueError;

/**
 * Checks arrays, models and training on gpu(0) against the CPU: {@code java OnGpu.java PREFIX CASE}.
 * CASE is a .params file with "in:NAME" for each input, and "out:NUMBER". Prints "done".
 */
public final class OnGpu {
  private static final Device GPU = Device.gpu(0);

  private OnGpu() {}

  static void require(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("does not hold: " + what);
    }
  }

  static void requireClose(NDArray given, NDArray wanted, float tolerance, String what) {
    float[] a = given.toFloats();
    float[] b = wanted.toFloats();
    require(a.length == b.length, "the size of " + what);
    for (int i = 0; i < a.length; i++) {
      require(
          Math.abs(a[i] - b[i]) <= tolerance * (1 + Math.abs(b[i])),
          what + "[" + i + "]: " + a[i] + " and " + b[i]);
    }
  }

  static NDArray[] moved(NDArray[] arrays, Device device) {
    NDArray[] result = new NDArray[arrays.length];
    for (int i = 0; i < arrays.length; i++) {
      result[i] = arrays[i].to(device);
    }
    return result;
  }

  static void arrays() {
    require(Device.numGpus() >= 1 && Device.whyNoGpu().isEmpty(), "there is a GPU");
    Device.Memory memory = GPU.memory();
    require(0 < memory.freeBytes() && memory.freeBytes() <= memory.totalBytes(), "memory of the GPU");
    try (NDArray x = NDArray.of(new float[] {1, 2, 3}, 3).to(GPU);
        NDArray zeros = NDArray.zeros(GPU, DType.FLOAT32, 3);
        NDArray y = x.times(2).plus(zeros);
        NDArray back = y.to(Device.cpu());
        NDArray same = x.to(GPU)) {
      require(x.device().equals(GPU) && zeros.device().equals(GPU) && y.device().equals(GPU), "arrays are on the GPU");
      require(back.device().equals(Device.cpu()) && back.toFloats()[2] == 6, "a copy on the CPU");
      same.copyFrom(new float[] {7, 8, 9});
      require(x.toFloats()[0] == 7, "an array that is there already is not copied");
    }
    NDArray ones = Operator.invoke("_ones", Map.of("shape", List.of(2), "ctx", GPU))[0];
    require(ones.device().equals(GPU) && ones.toFloats()[1] == 1, "an operator without inputs");
  }

  static void errors(Model model, NDArray[] inputs) {
    try {
      NDArray.zeros(GPU, DType.FLOAT32, 3).buffer();
      require(false, "a buffer of an array on a GPU is refused");
    } catch (UnsupportedError error) {
      require(error.getMessage().contains("gpu(0)"), error.getMessage());
    }
    try {
      NDArray.zeros(Device.gpu(7), DType.FLOAT32, 3);
      require(false, "a GPU that does not exist is refused");
    } catch (UnsupportedError error) {
      require(error.getMessage().contains("gpu(7)"), error.getMessage());
    }
    try {
      model.predict(inputs);
      require(false, "inputs on the CPU are refused by a model on a GPU");
    } catch (ValueError error) {
      require(error.getMessage().contains("gpu(0), where the model is"), error.getMessage());
    }
  }

  static void model(Model model, NDArray[] inputs, NDArray wanted) {
    require(model.device().equals(GPU) && model.parameters().values().iterator().next().device().equals(GPU), "moved");
    NDArray[] there = moved(inputs, GPU);
    NDArray[] outputs = model.predict(there);
    require(outputs[0].device().equals(GPU), "outputs are on the GPU");
    requireClose(outputs[0], wanted, 1e-5f, "an output");
    float[] values = model.predict(inputs[0].toFloats(), inputs[0].shape());
    require(Math.abs(values[0] - wanted.toFloats()[0]) < 1e-5, "an output of values of Java");
    try (Session session = model.bind(there)) {
      session.run();
      requireClose(session.outputs()[0], wanted, 1e-5f, "an output of a session");
    }
    TensorSpec[] specs = {new TensorSpec(DType.FLOAT32, inputs[0].shape())};
    try (Batcher batcher = model.batcher(new Batcher.Options(), specs)) {
      NDArray answer = batcher.predict(inputs)[0];
      require(answer.device().equals(Device.cpu()), "answers are on the CPU");
      requireClose(answer, wanted, 1e-5f, "an answer");
    }
  }

  static List<float[]> trained(String prefix, NDArray[] inputs, Device device) {
    try (Model model = Model.load(prefix).to(device);
        Trainer trainer = new Trainer(model, "sgd", Map.of("learning_rate", 0.05, "momentum", 0.9))) {
      for (int step = 0; step < 3; step++) {
        NDArray loss;
        try (Autograd.Scope recording = Autograd.record()) {
          NDArray distance = model.predict(moved(inputs, device))[0].minus(0.5);
          loss = Operator.invoke("mean", Map.of(), distance.times(distance))[0];
        }
        loss.backward();
        trainer.step(1);
      }
      List<float[]> result = new ArrayList<>();
      model.parameters().values().forEach(parameter -> result.add(parameter.toFloats()));
      return result;
    }
  }

  public static void main(String[] words) {
    Map<String, NDArray> stored = NDArray.load(java.nio.file.Path.of(words[1]));
    arrays();
    try (Model model = Model.load(words[0])) {
      NDArray[] inputs = model.inputs().stream().map(name -> stored.get("in:" + name)).toArray(NDArray[]::new);
      model.to(GPU);
      errors(model, inputs);
      model(model, inputs, stored.get("out:0"));
      List<float[]> onCpu = trained(words[0], inputs, Device.cpu());
      List<float[]> onGpu = trained(words[0], inputs, GPU);
      for (int i = 0; i < onCpu.size(); i++) {
        for (int k = 0; k < onCpu.get(i).length; k++) {
          float a = onGpu.get(i)[k];
          float b = onCpu.get(i)[k];
          require(Math.abs(a - b) <= 1e-5f * (1 + Math.abs(b)), "parameter " + i + ": " + a + " and " + b);
        }
      }
    }
    System.out.println("done");
  }
}
