package org.hybridnet;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TrainerTest {
  /** The settings are those of write_models.py. */
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
            // Math.pow, in Adam's correction of the learning rate, may differ from Python's in the last bit.
            float tolerance = optimizer.equals("adam") ? 1e-6f : 0;
            assertArrayEquals(expected.get(key).toFloats(), parameter.toFloats(), tolerance, key);
          });
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
      assertTrue(
          assertThrows(ParamError.class, () -> new Trainer(parameters, "adams", Map.of())).getMessage().contains("adams"));
      ParamError unknown = assertThrows(ParamError.class, () -> new Trainer(parameters, "sgd", Map.of("beta1", 1)));
      assertTrue(unknown.getMessage().contains("learning_rate"), unknown.getMessage());
      Trainer trainer = new Trainer(parameters, "adam", Map.of());
      assertThrows(ValueError.class, () -> trainer.step(0));
      trainer.close();
      assertThrows(IllegalStateException.class, () -> trainer.step(1));
    }
  }
}
