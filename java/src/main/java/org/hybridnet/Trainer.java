package org.hybridnet;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Changes parameters by their gradients, as {@code gluon.Trainer} does:
 *
 * <ul>
 *   <li>{@code sgd}: {@code mom = momentum * mom - learning_rate * (clip(grad / batch) + wd *
 *       weight); weight += mom}. Settings: learning_rate (0.01), momentum (0), wd (0), clip_gradient
 *       (none).
 *   <li>{@code adam}: Kingma and Ba, arXiv 1412.6980. Settings: learning_rate (0.001), beta1 (0.9),
 *       beta2 (0.999), epsilon (1e-8), wd (0), clip_gradient (none).
 * </ul>
 *
 * <p>Optimizers with other rules can be written with {@link Operator}. One thread uses a trainer at a
 * time.
 */
public final class Trainer implements AutoCloseable {
  private static final Map<String, Map<String, Double>> DEFAULTS =
      Map.of(
          "sgd", Map.of("learning_rate", 0.01, "momentum", 0.0, "wd", 0.0, "clip_gradient", -1.0),
          "adam",
              Map.of(
                  "learning_rate", 0.001, "beta1", 0.9, "beta2", 0.999, "epsilon", 1e-8, "wd", 0.0, "clip_gradient",
                  -1.0));

  private final String optimizer;
  private final Map<String, Double> settings;
  private final List<NDArray> weights = new ArrayList<>();
  // Beside each weight what the optimizer keeps of it: nothing, a momentum, or mean and variance.
  private final List<NDArray[]> states = new ArrayList<>();
  private int steps;

  /**
   * Makes a trainer, and the parameters variables whose gradients are computed.
   *
   * @param parameters what is to be trained, by name: {@link Model#parameters()}, or some of them.
   *     States that a model updates itself, such as {@code running_mean} and {@code running_var}, do
   *     not belong to them.
   * @param optimizer {@code sgd} or {@code adam}
   * @param settings those that differ from the values given above
   * @throws ParamError if the optimizer or a setting is unknown
   */
  public Trainer(Map<String, NDArray> parameters, String optimizer, Map<String, ? extends Number> settings) {
    Map<String, Double> known = DEFAULTS.get(optimizer);
    if (known == null) {
      throw new ParamError("Trainer: expected an optimizer of " + DEFAULTS.keySet() + ", got '" + optimizer + "'.");
    }
    this.optimizer = optimizer;
    this.settings = new LinkedHashMap<>(known);
    settings.forEach(
        (name, value) -> {
          if (!known.containsKey(name)) {
            throw new ParamError(
                "Trainer: optimizer '" + optimizer + "' has the settings " + known.keySet() + ", got '" + name + "'.");
          }
          this.settings.put(name, value.doubleValue());
        });
    int kept = optimizer.equals("adam") ? 2 : this.settings.get("momentum") != 0 ? 1 : 0;
    for (NDArray parameter : parameters.values()) {
      parameter.attachGrad();
      weights.add(parameter.share());
      NDArray[] state = new NDArray[kept];
      for (int i = 0; i < kept; i++) {
        state[i] = Operator.invoke("zeros_like", Map.of(), parameter)[0];
      }
      states.add(state);
    }
  }

  /**
   * Changes all parameters by the gradients of the last {@link Autograd#backward(NDArray...)}.
   *
   * @param batchSize what the gradients are divided by: the number of examples where the loss is
   *     their sum, 1 where it is their mean
   * @throws ValueError if it is less than 1
   */
  public void step(int batchSize) {
    if (batchSize < 1) {
      throw new ValueError("Trainer.step: expected a batch size of 1 or more, got " + batchSize + ".");
    }
    steps++;
    try (Operator update = update(1.0 / batchSize)) {
      for (int i = 0; i < weights.size(); i++) {
        NDArray weight = weights.get(i);
        NDArray[] state = states.get(i);
        NDArray[] inputs = new NDArray[2 + state.length];
        System.arraycopy(state, 0, inputs, 2, state.length);
        inputs[0] = weight;
        try (NDArray gradient = weight.grad()) {
          inputs[1] = gradient;
          update.callInto(inputs, weight);
        }
      }
    }
  }

  private Operator update(double rescale) {
    Map<String, Object> attributes = new LinkedHashMap<>(settings);
    attributes.remove("learning_rate");
    attributes.put("rescale_grad", rescale);
    double rate = learningRate();
    if (optimizer.equals("adam")) {
      rate *= Math.sqrt(1 - Math.pow(settings.get("beta2"), steps)) / (1 - Math.pow(settings.get("beta1"), steps));
      attributes.put("lr", rate);
      return Operator.of("adam_update", attributes);
    }
    attributes.put("lr", rate);
    if (settings.get("momentum") != 0) {
      return Operator.of("sgd_mom_update", attributes);
    }
    attributes.remove("momentum");
    return Operator.of("sgd_update", attributes);
  }

  /**
   * The learning rate.
   *
   * @return the rate of the next step
   */
  public double learningRate() {
    return settings.get("learning_rate");
  }

  /**
   * Sets the learning rate.
   *
   * @param rate the rate of the next steps
   */
  public void setLearningRate(double rate) {
    settings.put("learning_rate", rate);
  }

  /** Frees what the optimizer keeps. The parameters stay as they are. */
  @Override
  public void close() {
    weights.forEach(NDArray::close);
    states.forEach(
        state -> {
          for (NDArray array : state) {
            array.close();
          }
        });
  }
}
