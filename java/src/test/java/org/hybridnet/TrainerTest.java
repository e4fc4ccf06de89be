package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

class TrainerTest {
  /** Returns the settings of write_models.py. */
  private static Map<String, Double> settings(String name) {
    return switch (name) {
      case "plain" -> Map.of("learning_rate", 0.1);
      case "sgd" -> Map.of("learning_rate", 0.05, "momentum", 0.9, "wd", 0.01, "clip_gradient", 0.2);
      default -> Map.of("learning_rate", 0.01, "wd", 0.001);
    };
  }

  private static void train(Model model, Trainer trainer, Map<String, NDArray> stored, int steps) {
    for (int step = 0; step < steps; step++) {
      NDArray[] inputs = model.inputs().stream().map(name -> stored.get("in:" + name)).toArray(NDArray[]::new);
      NDArray loss;
      try (Autograd.Scope scope = Autograd.record()) {
        NDArray output = model.predict(inputs)[0];
        loss = Operator.invoke("mean", Map.of(), Operator.invoke("square", Map.of(), output.minus(1))[0])[0];
      }
      loss.backward();
      trainer.step(2);
    }
  }

  @ParameterizedTest
  @CsvSource({"net,plain,sgd", "net,sgd,sgd", "net,adam,adam", "lstm,sgd,sgd", "lstm,adam,adam"})
  void parametersBecomeThoseOfPython(String name, String variant, String optimizer) {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve(name + ".params"));
    Map<String, NDArray> expected = NDArray.load(ModelTest.models().resolve(name + "-tuned-" + variant + ".params"));
    try (Model model = Model.load(ModelTest.prefix(name))) {
      Map<String, NDArray> parameters = model.parameters();
      try (Trainer trainer = new Trainer(parameters, optimizer, settings(variant))) {
        train(model, trainer, stored, 20);
      }
      assertEquals(expected.keySet(), parameters.keySet());
      parameters.forEach(
          (key, parameter) -> {
            assertArrayEquals(expected.get(key).toFloats(), parameter.toFloats(), key);
          });
    }
  }

  /** Trains the LSTM like write_models.py; returns the losses of steps first to last - 1. */
  private static float[] losses(Model model, Trainer trainer, int first, int last) {
    NDArray data = NDArray.load(ModelTest.models().resolve("lstm.params")).get("in:data");
    float[] losses = new float[last - first];
    for (int step = first; step < last; step++) {
      HybridNet.seed(step);
      NDArray loss;
      try (Autograd.Scope scope = Autograd.record()) {
        NDArray output = model.predict(data)[0];
        loss = Operator.invoke("mean", Map.of(), Operator.invoke("square", Map.of(), output.minus(1))[0])[0];
      }
      loss.backward();
      trainer.step(2);
      losses[step - first] = loss.toFloats()[0];
    }
    return losses;
  }

  static List<String> optimizers() {
    return Trainer.optimizers().stream().filter(name -> !name.equals("GroupAdaGrad")).toList();
  }

  private static void assertParameters(Map<String, NDArray> stored, String prefix, Model model) {
    model
        .parameters()
        .forEach((key, array) -> assertArrayEquals(stored.get(prefix + key).toFloats(), array.toFloats(), key));
  }

  @ParameterizedTest
  @MethodSource("optimizers")
  void aHundredStepsOfEveryOptimizerHaveTheBitsOfPython(String optimizer) {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve("lstm-" + optimizer + ".params"));
    float[] expected = stored.get("losses").toFloats();
    try (Model model = Model.load(ModelTest.prefix("lstm"));
        Trainer trainer = new Trainer(model, optimizer, Map.of("learning_rate", 0.01))) {
      assertArrayEquals(Arrays.copyOf(expected, 100), losses(model, trainer, 0, 100));
      assertParameters(stored, "100:", model);
      assertEquals(100, trainer.numUpdates());
    }
  }

  @ParameterizedTest
  @MethodSource("optimizers")
  void trainingGoesOnFromTheStatesOfPythonAndFromItsOwn(String optimizer, @TempDir Path folder) {
    Map<String, NDArray> stored = NDArray.load(ModelTest.models().resolve("lstm-" + optimizer + ".params"));
    float[] all = stored.get("losses").toFloats();
    float[] expected = Arrays.copyOfRange(all, 100, all.length);
    Path states = ModelTest.models().resolve("lstm-" + optimizer + ".states");
    for (int round = 0; round < 2; round++) {
      try (Model model = Model.load(ModelTest.prefix("lstm"));
          Trainer trainer = new Trainer(model, "sgd", Map.of())) {
        model.parameters().forEach((key, array) -> array.copyFrom(stored.get("100:" + key).toFloats()));
        trainer.loadStates(states);
        states = folder.resolve("again.states");
        trainer.saveStates(states);
        assertEquals("0.01", trainer.setting("learning_rate"));
        assertArrayEquals(expected, losses(model, trainer, 100, 105));
        assertParameters(stored, "105:", model);
      }
    }
  }

  @Test
  void schedulesAndSettingsAreThoseOfPython() {
    try (NDArray weight = NDArray.of(new float[] {1}, 1);
        Trainer trainer = new Trainer(Map.of("weight", weight), "sgd", Map.of("learning_rate", 1, "clip_gradient", 2))) {
      trainer.setSchedule("MultiFactorScheduler", Map.of("step", List.of(2, 3), "factor", 0.5));
      double[] rates = new double[5];
      for (int i = 0; i < rates.length; i++) {
        try (Autograd.Scope scope = Autograd.record()) {
          weight.times(3).backward();
        }
        trainer.step(1);
        rates[i] = trainer.learningRate();
      }
      assertArrayEquals(new double[] {1, 1, 0.5, 0.25, 0.25}, rates);
      assertThrows(ValueError.class, () -> trainer.setLearningRate(1));
      trainer.setSchedule(null, Map.of());
      trainer.setSetting("clip_gradient", null);
      assertEquals("None", trainer.setting("clip_gradient"));
      trainer.setMultipliers("weight", 0, 1);
      float before = weight.toFloats()[0];
      assertThrows(GradientError.class, () -> trainer.step(1));
      trainer.step(1, true);
      try (Autograd.Scope scope = Autograd.record()) {
        weight.times(3).backward();
      }
      trainer.step(1);
      assertEquals(before, weight.toFloats()[0]);
    }
  }

  @Test
  void theLearningRateCanBeChanged() {
    try (NDArray weight = NDArray.of(new float[] {1}, 1);
        Trainer trainer = new Trainer(Map.of("weight", weight), "sgd", Map.of("learning_rate", 1))) {
      for (double rate : new double[] {1, 0.5}) {
        trainer.setLearningRate(rate);
        assertEquals(rate, trainer.learningRate());
        try (Autograd.Scope scope = Autograd.record()) {
          weight.times(3).backward();
        }
        trainer.step(3);
      }
      assertArrayEquals(new float[] {-0.5f}, weight.toFloats());
    }
  }

  @Test
  void wrongUsesAreErrors() {
    try (NDArray weight = NDArray.zeros(DType.FLOAT32, 1)) {
      Map<String, NDArray> parameters = Map.of("weight", weight);
      ValueError none = assertThrows(ValueError.class, () -> new Trainer(parameters, "adams", Map.of()));
      assertTrue(none.getMessage().contains("adamw"), none.getMessage());
      assertThrows(ValueError.class, () -> new Trainer(parameters, "sgd", Map.of()).setSchedule("Factor", Map.of()));
      assertThrows(ParamError.class, () -> new Trainer(parameters, "sgd", Map.of()).setting("beta1"));
      assertThrows(ValueError.class, () -> new Trainer(parameters, "sgd", Map.of()).setMultipliers("bias", 1, 1));
      Path missing = Path.of("/no/such/folder/states");
      assertThrows(FileError.class, () -> new Trainer(parameters, "sgd", Map.of()).loadStates(missing));
      assertThrows(FileError.class, () -> new Trainer(parameters, "sgd", Map.of()).saveStates(missing));
      Path model = ModelTest.models().resolve("lstm.params");
      assertThrows(FormatError.class, () -> new Trainer(parameters, "sgd", Map.of()).loadStates(model));
      ParamError unknown = assertThrows(ParamError.class, () -> new Trainer(parameters, "sgd", Map.of("beta1", 1)));
      assertTrue(unknown.getMessage().contains("learning_rate"), unknown.getMessage());
      Trainer trainer = new Trainer(parameters, "adam", Map.of());
      assertThrows(ValueError.class, () -> trainer.step(0));
      trainer.close();
      assertThrows(IllegalStateException.class, () -> trainer.step(1));
    }
  }
}
