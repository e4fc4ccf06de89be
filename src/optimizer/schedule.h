// Learning-rate schedules: functions from the number of updates to a learning rate, as hybridnet.lr_scheduler has them.
// Both stand for themselves, unlike optimizers, whose Python classes follow src/optimizer: Python's schedules are
// classes of four lines that users derive from, whose attributes they read and set between calls and whose methods
// (get_warmup_lr, __call__) they replace one by one. A call into the library would have to carry all attributes there
// and back, and could not call what was replaced. tests/python/deploy/test_trainers_from_c.py holds the two equal to
// the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "optimizer/settings.h"

namespace hybridnet::optimizer {

// What schedules of all kinds are made of; which members count is a matter of the kind.
struct ScheduleState {
  double base_lr = 0.01, warmup_begin_lr = 0, factor = 1, stop_factor_lr = 1e-8, final_lr = 0, pwr = 2;
  int64_t warmup_steps = 0, step = 1, max_update = 1;
  std::vector<double> steps;  // whole numbers
  std::string warmup_mode = "linear";
  // Follow from the above, or from the updates so far.
  double warmup_final_lr = 0.01, base_lr_orig = 0.01;
  int64_t count = 0, cur_step_ind = 0, max_steps = 1;
};

struct ScheduleKind {
  std::string name;  // of Python's class
  FieldsSchema<ScheduleState> arguments;
  // Checks the arguments and completes them. Throws ValueError.
  std::function<void(ScheduleState&)> begin;
  std::function<double(ScheduleState&, int64_t num_update)> rate_after_warmup;
  // Checks what a file says at this number of updates. Throws ValueError. Empty: nothing can be wrong.
  std::function<void(const ScheduleState&, int64_t num_update)> check_restored;
  FieldsSchema<ScheduleState> attributes;  // of Python's class, as files hold them
};

class Schedule {
 public:
  // By name and arguments as texts. Where base_lr is not among them it is default_lr. Throws ValueError, ParamError.
  static Schedule make(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments,
                       double default_lr);
  // As a file of states holds it; attributes: by name. Throws FormatError for classes that are none, ValueError and
  // ParamError for values.
  static Schedule restore(const std::string& name, const std::vector<std::pair<std::string, AttrValue>>& attributes,
                          int64_t num_update);

  const std::string& name() const { return kind_->name; }
  std::vector<std::pair<std::string, AttrValue>> attributes() const;
  double rate(int64_t num_update);

 private:
  explicit Schedule(const ScheduleKind& kind) : kind_(&kind) {}
  const ScheduleKind* kind_;
  ScheduleState state_;
};

}  // namespace hybridnet::optimizer
