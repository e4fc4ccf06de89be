package org.hybridnet;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Updates parameters by their gradients, with the same bits as {@code gluon.Trainer} in Python: it
 * has every optimizer with its settings and defaults, the schedules of {@code mx.lr_scheduler}, and
 * files of states in the format of Python and C++.
 *
 * <p>Settings are the arguments of the optimizer in Python: {@code learning_rate}, {@code momentum},
 * {@code wd}, {@code clip_gradient}, {@code multi_precision}, {@code beta1}, ... Values are numbers,
 * booleans and texts; null is None. Parameters are updated in the order of their names. Any thread
 * may call a trainer; calls run one by one.
 */
public final class Trainer extends NativeObject {
  /**
   * Makes a trainer over arrays, which become variables whose gradients are computed.
   *
   * @param parameters the arrays to train, by name: some of {@link Model#parameters()}, or arrays of
   *     the program, without states that a model updates itself, such as {@code running_mean}. The
   *     trainer keeps them alive.
   * @param optimizer one of {@link #optimizers()}, in upper or lower case
   * @param settings the settings that differ from the defaults
   * @throws ValueError if there is no such optimizer
   * @throws ParamError if a setting is unknown or out of range
   * @throws DTypeError if a parameter is not of a floating dtype
   */
  public Trainer(Map<String, NDArray> parameters, String optimizer, Map<String, ?> settings) {
    super(create(parameters, optimizer, new Attributes(settings)), 0, Native::trainerFree);
  }

  /**
   * Makes a trainer over all parameters of a model except its states.
   *
   * @param model the model to train
   * @param optimizer one of {@link #optimizers()}, in upper or lower case
   * @param settings the settings that differ from the defaults
   * @throws ValueError if there is no such optimizer
   * @throws ParamError if a setting is unknown or out of range
   */
  public Trainer(Model model, String optimizer, Map<String, ?> settings) {
    super(create(model, optimizer, new Attributes(settings)), 0, Native::trainerFree);
  }

  private static long create(Map<String, NDArray> parameters, String optimizer, Attributes settings) {
    byte[][] names = parameters.keySet().stream().map(Native::utf8).toArray(byte[][]::new);
    NDArray[] arrays = parameters.values().toArray(NDArray[]::new);
    return Native.trainerCreate(names, arrays, Native.utf8(optimizer), settings.keys, settings.values);
  }

  private static long create(Model model, String optimizer, Attributes settings) {
    return Native.trainerCreateForModel(model, Native.utf8(optimizer), settings.keys, settings.values);
  }

  /**
   * The names of all optimizers.
   *
   * @return the names of the classes in {@code mx.optimizer}
   */
  public static List<String> optimizers() {
    return List.of(Native.texts(Native.optimizerNames()));
  }

  /**
   * Updates all parameters by the gradients of the last {@link Autograd#backward(NDArray...)}.
   *
   * @param batchSize divisor of the gradients: the number of examples if the loss is their sum, 1 if
   *     it is their mean
   * @throws ValueError if it is not positive
   * @throws GradientError if backward has not reached a parameter since the last step
   */
  public void step(double batchSize) {
    step(batchSize, false);
  }

  /**
   * The same, but optionally backward need not reach all parameters.
   *
   * @param batchSize divisor of the gradients
   * @param ignoreStaleGrad whether parameters that backward has not reached stay unchanged
   * @throws ValueError if batchSize is not positive
   * @throws GradientError if backward has not reached a parameter, unless ignoreStaleGrad
   */
  public void step(double batchSize, boolean ignoreStaleGrad) {
    Native.trainerStep(this, batchSize, ignoreStaleGrad);
  }

  /**
   * Takes the parameters of process 0 of the {@link Group}, and sums the gradients over all processes
   * in each step from now on, like {@code kvstore="dist_sync"} in Python. All processes must call it,
   * with equal names, shapes and dtypes of parameters; batchSize of steps counts the examples of all
   * processes. With ignoreStaleGrad, a parameter that backward has reached in any process is updated
   * in all.
   *
   * @return this
   * @throws GroupError if another process fails or disagrees
   */
  public Trainer sumOverGroup() {
    Native.trainerSumOverGroup(this);
    return this;
  }

  /**
   * The number of updates so far, including the updates before a loaded file was saved.
   *
   * @return the largest count over all parameters
   */
  public long numUpdates() {
    return Native.trainerNumUpdates(this);
  }

  /**
   * The learning rate.
   *
   * @return the schedule's rate for the current number of updates, or the fixed rate
   */
  public double learningRate() {
    return Native.trainerLearningRate(this);
  }

  /**
   * Sets the learning rate.
   *
   * @param rate the rate of the next steps
   * @throws ValueError if there is a schedule
   */
  public void setLearningRate(double rate) {
    Native.trainerSetLearningRate(this, rate);
  }

  /**
   * Lets the learning rate follow a schedule.
   *
   * @param schedule {@code FactorScheduler}, {@code MultiFactorScheduler}, {@code PolyScheduler},
   *     {@code CosineScheduler}, or null for none
   * @param arguments as in {@code mx.lr_scheduler}: step, factor, max_update, warmup_steps, ...;
   *     base_lr defaults to the learning rate of the trainer
   * @throws ValueError if there is no such schedule, or arguments do not fit together
   * @throws ParamError if an argument is unknown or out of range
   */
  public void setSchedule(String schedule, Map<String, ?> arguments) {
    Attributes texts = new Attributes(arguments);
    Native.trainerSetSchedule(this, schedule == null ? null : Native.utf8(schedule), texts.keys, texts.values);
  }

  /**
   * A setting of the optimizer.
   *
   * @param name such as {@code momentum}
   * @return its value as text: "0.9", "True", "None"
   * @throws ParamError if there is no such setting
   */
  public String setting(String name) {
    return new String(Native.trainerSetting(this, Native.utf8(name)), UTF_8);
  }

  /**
   * Changes a setting of the optimizer for the next steps.
   *
   * @param name such as {@code momentum}
   * @param value a number, boolean or text, or null for None
   * @throws ParamError if there is no such setting, or the value is out of range
   */
  public void setSetting(String name, Object value) {
    Native.trainerSetSetting(this, Native.utf8(name), Native.utf8(Attributes.text(value)));
  }

  /**
   * Sets factors for one parameter; both are 1 by default.
   *
   * @param parameter its name
   * @param lrMult factor of the learning rate
   * @param wdMult factor of the weight decay
   * @throws ValueError if there is no such parameter
   */
  public void setMultipliers(String parameter, double lrMult, double wdMult) {
    Native.trainerSetMultipliers(this, Native.utf8(parameter), lrMult, wdMult);
  }

  /**
   * Writes the optimizer's states, settings, counts and schedule, like {@code
   * gluon.Trainer.save_states} in Python. After an error the file is unchanged. Multipliers are not
   * saved.
   *
   * @param file the file to write
   * @throws FileError if it cannot be written
   */
  public void saveStates(Path file) {
    Native.trainerSaveStates(this, Native.utf8(file.toString()));
  }

  /**
   * Reads a file of {@link #saveStates}, or of Python or C++. States are assigned by the names of
   * their parameters.
   *
   * @param file the file to read
   * @throws FileError if it cannot be read
   * @throws FormatError if it does not hold states of these parameters; the trainer is unchanged then
   */
  public void loadStates(Path file) {
    Native.trainerLoadStates(this, Native.utf8(file.toString()));
  }
}
