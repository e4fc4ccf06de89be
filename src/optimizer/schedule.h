// Learning-rate schedules: functions from the number of updates to a learning rate, equivalent to
// hybridnet.lr_scheduler. The two implementations are independent, unlike optimizers, whose Python classes follow
// src/optimizer: Python's schedules are classes of four lines that users derive from, whose attributes they read and
// set between calls and whose methods (get_warmup_lr, __call__) they replace one by one. A call into the library would
// have to copy all attributes in both directions, and could not call replaced methods.
// tests/python/deploy/test_trainers_from_c.py checks that both are bit-equal.
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

// The values of schedules of all kinds; each kind uses some of the members.
struct ScheduleState {
  double base_lr = 0.01, warmup_begin_lr = 0, factor = 1, stop_factor_lr = 1e-8, final_lr = 0, pwr = 2;
  int64_t warmup_steps = 0, step = 1, max_update = 1;
  std::vector<double> steps;  // integers
  std::string warmup_mode = "linear";
  // Derived from the members above, or from the updates so far.
  double warmup_final_lr = 0.01, base_lr_orig = 0.01;
  int64_t count = 0, cur_step_ind = 0, max_steps = 1;
};

struct ScheduleKind {
  std::string name;  // name of Python's class
  FieldsSchema<ScheduleState> arguments;
  // Checks the arguments and completes them. Throws ValueError.
  std::function<void(ScheduleState&)> begin;
  std::function<double(ScheduleState&, int64_t num_update)> rate_after_warmup;
  // Checks the values of a file at this number of updates. Throws ValueError. Empty: no check is needed.
  std::function<void(const ScheduleState&, int64_t num_update)> check_restored;
  FieldsSchema<ScheduleState> attributes;  // attributes of Python's class, which files contain
};

class Schedule {
 public:
  // Creates a schedule from its name and arguments as texts. Without the argument base_lr it is default_lr. Throws
  // ValueError, ParamError.
  static Schedule make(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments,
                       double default_lr);
  // Creates a schedule from its description in a file of states; attributes: pairs of name and value. Throws
  // FormatError for unknown classes, ValueError and ParamError for invalid values.
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
