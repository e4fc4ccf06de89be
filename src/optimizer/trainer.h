// Training by an optimizer of the table: what gluon.Trainer does, without Python.
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

// What an optimizer keeps of one weight.
struct WeightState {
  NDArray master;               // null without multi_precision
  std::vector<NDArray> arrays;  // as many as the layout has items; null where there is none
};

// How far training has come: what a file of states holds. Weights are numbered in the order of their names.
struct TrainingState {
  const Rule* rule = nullptr;
  Settings settings;
  std::optional<Schedule> schedule;
  int64_t num_update = 0;
  std::map<size_t, int64_t> counts;
  std::map<size_t, WeightState> weights;
};

// The names and arrays of what is trained, in the order of the names.
struct TrainedParameter {
  std::string name;
  NDArray weight;  // has a gradient, or is passed over
  double lr_mult = 1, wd_mult = 1;
};

// Safe from any thread; calls run one by one.
class Trainer {
 public:
  using Texts = std::vector<std::pair<std::string, std::string>>;
  // Parameters in any order; those without a gradient are in the numbering alone. Throws ValueError for names that
  // occur twice and for optimizers that do not exist, ParamError for settings.
  Trainer(std::vector<TrainedParameter> parameters, std::string_view optimizer, const Texts& settings);

  // Updates all parameters by gradients divided by batch_size. Throws ValueError for sizes that are not positive,
  // GradientError where backward has not reached a parameter since the last step, unless ignore_stale_grad.
  void step(double batch_size, bool ignore_stale_grad);

  double learning_rate();
  void set_learning_rate(double rate);  // throws ValueError where there is a schedule
  void set_schedule(std::string_view name, const Texts& arguments);
  void drop_schedule();
  void set_multipliers(std::string_view parameter, double lr_mult, double wd_mult);
  std::string setting(std::string_view name);
  void set_setting(std::string_view name, const std::string& text);
  int64_t num_update();
  std::string optimizer();

  // The format of gluon.Trainer.save_states. Loading takes all or nothing.
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
  TrainingState state_;
  LinkedPrograms programs_;
};

// state_file.cc. `parameters` in the order of their numbers.
std::string write_states(const TrainingState& state, std::span<const TrainedParameter> parameters);
// Throws FormatError. what: the file's name, for texts. current: settings that the file does not hold stay.
TrainingState read_states(std::string_view bytes, const std::string& what, const TrainingState& current,
                          std::span<const TrainedParameter> parameters);

}  // namespace hybridnet::optimizer
