// The table of optimizers: what each may be told, what it keeps of a weight, and how it changes it. Python's
// optimizers, mx.jit.train_step and the trainers of C, C++ and Java follow it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hybridnet/ndarray.h"
#include "optimizer/program.h"
#include "optimizer/settings.h"

namespace hybridnet::optimizer {

// An array that an optimizer keeps beside a weight: zeros, or a copy of the weight.
struct StateSpec {
  const char* name;
  bool copy_of_weight = false;
  bool one_per_row = false;  // shape (rows, 1); the weight must be a matrix
};
// One state, or a tuple of them; a state that is not needed is None in Python and in files.
struct StateLayout {
  bool is_tuple = false;
  std::vector<std::optional<StateSpec>> items;
};

// One weight in one step.
struct UpdateItem {
  NDArray weight, grad, master;  // master: the float32 copy, or null
  std::vector<NDArray> states;   // null where there is none
  std::string name;              // of the parameter
  double lr = 0, wd = 0;         // with the multipliers of the parameter
  int64_t t = 1;                 // number of this update of the weight
};

struct Rule {
  std::string name, doc;
  SettingsSchema schema;
  // Fields of the schema that steps change.
  std::vector<std::string> variables = {};
  // Numbers of a step that the update reads.
  std::vector<std::string> columns = {"lr", "wd", "rescale_grad"};
  bool aggregates = false;         // all weights of one dtype are updated together, and counted before
  bool native_master = false;      // there are operators for the weight and its float32 copy
  bool lazy = false;               // lazy_update: a row_sparse gradient changes its own rows only
  bool draws = false;              // the columns hold the key of random numbers, which computing them takes
  bool rate_before_count = false;  // the learning rate is that of the number of updates before this one

  std::function<StateLayout(const Settings&)> states;
  std::function<void(const Settings&, UpdateBuilder&)> build;
  // The columns for one weight. Unset: lr, wd, rescale_grad and t, as far as there are columns.
  std::function<std::vector<double>(Settings&, const UpdateItem&)> rates = nullptr;
  // Which of several programs a weight gets in its update number t. Unset: there is one.
  std::function<int64_t(const Settings&, std::string_view weight, int64_t t)> variant = nullptr;
  // Changes variables before the columns are computed. base_lr: without multipliers.
  std::function<void(Settings&, double base_lr)> begin = nullptr;

  // How Python's class calls a field of the schema; the name in files of states.
  std::string attribute_of(const std::string& field) const;
  bool is_variable(std::string_view field) const;
  // Throws ParamError for settings that are unknown or out of range.
  Settings parse(const std::vector<std::pair<std::string, std::string>>& texts) const;
  UpdateProgram program(const Settings& settings, UpdateSubject subject, bool allows_native = true) const;
  std::vector<double> rates_of(Settings& settings, const UpdateItem& item) const;
  int64_t variant_of(const Settings& settings, std::string_view weight, int64_t t) const {
    return variant ? variant(settings, weight, t) : 0;
  }
};

const std::vector<std::unique_ptr<Rule>>& rules();
// By name, in any case. Throws ValueError naming those that there are.
const Rule& rule(std::string_view name);

// What the parts of the table share. Settings that every optimizer has.
std::unique_ptr<Rule> make_rule(const char* name, const char* doc, double learning_rate = 0.01);
StateLayout no_state(const Settings&);
StateLayout one_state(const char* name);
StateLayout tuple_of(std::initializer_list<const char*> names);
// Attributes of update operators: clip_gradient, where it is set.
UpdateBuilder::Attributes with_clip(const Settings& s, UpdateBuilder::Attributes attributes,
                                    const char* name = "clip_gradient");

// Momentum as a setting, and its array as the state where it is not 0.
void add_momentum(Rule& rule, double value = 0.0);
// A step of SGD along grad, with momentum where there is a state for it: that of the settings, or of a column.
void build_descent(const Settings& s, UpdateBuilder& b, const Term& grad, bool momentum_is_rate = false);

using RuleList = std::vector<std::unique_ptr<Rule>>;
void add_descent_rules(RuleList& list);      // descent.cc: SGD and its relatives
void add_large_batch_rules(RuleList& list);  // large_batch.cc: LARS, LBSGD
void add_moment_rules(RuleList& list);       // moments.cc: Adam and its relatives
void add_adaptive_rules(RuleList& list);     // adaptive.cc: AdaGrad, RMSProp, ...

}  // namespace hybridnet::optimizer
