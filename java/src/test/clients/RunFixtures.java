import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.hybridnet.Autograd;
import org.hybridnet.HybridNet;
import org.hybridnet.Model;
import org.hybridnet.NDArray;
import org.hybridnet.Trainer;

/**
 * Runs and trains models like tests/cpp/clients/run_model.c and train_fixture.cc: {@code RunFixtures
 * CASES}, where CASES is a file of lines whose words are separated by tabs.
 *
 * <pre>
 * run SYMBOL PARAMS CASE RESULT                          outputs and gradients
 * train SYMBOL PARAMS CASE STEPS RESULT OPTIMIZER...     parameters after the first and the last step
 * </pre>
 */
class RunFixtures {
  public static void main(String[] words) throws IOException {
    for (String line : Files.readAllLines(Path.of(words[0]))) {
      String[] command = line.split("\t");
      if (command[0].equals("run")) {
        run(command);
      } else {
        train(command);
      }
    }
  }

  private static NDArray[] inputs(Model model, Map<String, NDArray> given) {
    return model.inputs().stream().map(name -> given.get("input:" + name)).toArray(NDArray[]::new);
  }

  /** Computes gradients for the outputs that have a head in the file; returns false if none has. */
  private static boolean backward(NDArray[] outputs, Map<String, NDArray> given) {
    List<NDArray> heads = new ArrayList<>();
    List<NDArray> arriving = new ArrayList<>();
    for (int i = 0; i < outputs.length; i++) {
      if (given.containsKey("head:" + i)) {
        heads.add(outputs[i]);
        arriving.add(given.get("head:" + i));
      }
    }
    if (!heads.isEmpty()) {
      Autograd.backward(heads.toArray(NDArray[]::new), arriving.toArray(NDArray[]::new), false, true);
    }
    return !heads.isEmpty();
  }

  private static void run(String[] words) {
    Map<String, NDArray> given = NDArray.load(Path.of(words[3]));
    Map<String, NDArray> results = new LinkedHashMap<>();
    try (Model model = Model.load(Path.of(words[1]), Path.of(words[2]))) {
      Map<String, NDArray> wanted = new LinkedHashMap<>(model.parameters());
      model.inputs().forEach(name -> wanted.put(name, given.get("input:" + name)));
      wanted.keySet().removeIf(name -> !given.containsKey("want:" + name));
      wanted.values().forEach(NDArray::attachGrad);
      boolean records = given.keySet().stream().anyMatch(name -> name.startsWith("head:"));
      NDArray[] outputs;
      try (Autograd.Scope scope = records ? Autograd.record() : Autograd.pause()) {
        outputs = model.predict(inputs(model, given));
      }
      for (int i = 0; i < outputs.length; i++) {
        results.put("output:" + i, outputs[i]);
      }
      if (backward(outputs, given)) {
        wanted.forEach((name, array) -> results.put("grad:" + name, array.grad()));
      }
      NDArray.save(Path.of(words[4]), results);
    }
  }

  /** Makes a trainer of all parameters; for GroupAdaGrad, which needs matrices, only of matrices. */
  private static Trainer makeTrainer(Model model, String optimizer) {
    Map<String, Object> settings = Map.of("learning_rate", 0.01);
    if (!optimizer.equals("GroupAdaGrad")) {
      return new Trainer(model, optimizer, settings);
    }
    Map<String, NDArray> matrices = new LinkedHashMap<>(model.parameters());
    matrices.values().removeIf(parameter -> parameter.shape().length != 2);
    return new Trainer(matrices, optimizer, settings);
  }

  private static void train(String[] words) {
    Map<String, NDArray> given = NDArray.load(Path.of(words[3]));
    Map<String, NDArray> results = new LinkedHashMap<>();
    int steps = Integer.parseInt(words[4]);
    for (String optimizer : Arrays.copyOfRange(words, 6, words.length)) {
      try (Model model = Model.load(Path.of(words[1]), Path.of(words[2]));
          Trainer trainer = makeTrainer(model, optimizer)) {
        HybridNet.seed(7);
        for (int step = 1; step <= steps; step++) {
          NDArray[] outputs;
          try (Autograd.Scope scope = Autograd.record()) {
            outputs = model.predict(inputs(model, given));
          }
          backward(outputs, given);
          trainer.step(2, true);
          if (step == 1 || step == steps) {
            String prefix = optimizer + ":" + step + ":";
            model.parameters().forEach((name, value) -> results.put(prefix + name, value.copy()));
          }
        }
      }
    }
    NDArray.save(Path.of(words[5]), results);
  }
}
