// Training by an optimizer of the table: gluon.Trainer without Python.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/ndarray.h"
#include "optimizer/linked_program.h"
#include "optimizer/rules.h"
#include "optimizer/schedule.h"

namespace hybridnet::optimizer {

// The optimizer states of one weight.
struct WeightState {
  NDArray master;               // null without multi_precision
  std::vector<NDArray> arrays;  // one per item of the layout; null if unused
};

// The progress of training, which a file of states holds. Weights are numbered in the order of their names.
struct TrainingState {
  const Rule* rule = nullptr;
  Settings settings;
  std::optional<Schedule> schedule;
  int64_t num_update = 0;
  std::map<size_t, int64_t> counts;
  std::map<size_t, WeightState> weights;
};

// A trained parameter: its name and array. Parameters are in the order of their names.
struct TrainedParameter {
  std::string name;
  NDArray weight;  // without a gradient, it is skipped
  double lr_mult = 1, wd_mult = 1;
};

// Thread-safe; calls run one at a time.
class Trainer {
 public:
  using Texts = std::vector<std::pair<std::string, std::string>>;
  // Parameters may be in any order; those without a gradient are numbered but not trained. Throws ValueError for
  // duplicate names and unknown optimizers, ParamError for settings.
  Trainer(std::vector<TrainedParameter> parameters, std::string_view optimizer, const Texts& settings);

  // Updates all parameters by gradients divided by batch_size. Throws ValueError for sizes that are not positive, and
  // GradientError if a parameter has no gradient from backward since the last step, unless ignore_stale_grad.
  void step(double batch_size, bool ignore_stale_grad);

  // Takes the values of process 0 of the group (group/current.h), and sums gradients over its processes in each step
  // from now on. With ignore_stale_grad, a parameter that any process has reached is updated in all. Throws GroupError.
  void sum_over_group();

  double learning_rate();
  void set_learning_rate(double rate);  // throws ValueError if there is a schedule
  void set_schedule(std::string_view name, const Texts& arguments);
  void drop_schedule();
  void set_multipliers(std::string_view parameter, double lr_mult, double wd_mult);
  std::string setting(std::string_view name);
  void set_setting(std::string_view name, const std::string& text);
  int64_t num_update();
  std::string optimizer();

  // The format of gluon.Trainer.save_states. A failed load changes nothing.
  void save_states(const std::string& path);
  void load_states(const std::string& path);

 private:
  struct Item;
  double base_rate();
  int field_of(std::string_view name) const;
  std::vector<size_t> fresh_parameters(bool ignore_stale_grad) const;
  void count(size_t index);
  UpdateItem make_item(size_t index);
  void step_together(std::span<const size_t> indices, const Settings& now);
  void run(std::span<UpdateItem> items, Settings now);

  std::mutex mutex_;
  std::vector<TrainedParameter> parameters_;
  bool sums_over_group_ = false;
  TrainingState state_;
  LinkedPrograms programs_;
};

// Implemented in state_file.cc. `parameters` in the order of their numbers.
std::string write_states(const TrainingState& state, std::span<const TrainedParameter> parameters);
// Throws FormatError. `what`: the file's name, for error texts. current: provides the settings that the file does not
// contain.
TrainingState read_states(std::string_view bytes, const std::string& what, const TrainingState& current,
                          std::span<const TrainedParameter> parameters);

}  // namespace hybridnet::optimizer
