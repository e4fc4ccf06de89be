// The table of optimizers: the settings of each, its states per weight, and its update. Python's optimizers,
// mx.jit.train_step and the trainers of C, C++ and Java use it.
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

// An array that an optimizer keeps for a weight: zeros, or a copy of the weight.
struct StateSpec {
  const char* name;
  bool copy_of_weight = false;
  bool one_per_row = false;  // shape (rows, 1); the weight must be a matrix
};
// One state, or a tuple of states; an unused state is None in Python and in files.
struct StateLayout {
  bool is_tuple = false;
  std::vector<std::optional<StateSpec>> items;
};

// One weight in one step.
struct UpdateItem {
  NDArray weight, grad, master;  // master: the float32 copy, or null
  std::vector<NDArray> states;   // null if unused
  std::string name;              // name of the parameter
  double lr = 0, wd = 0;         // including the multipliers of the parameter
  int64_t t = 1;                 // number of this update of the weight
};

struct Rule {
  std::string name, doc;
  SettingsSchema schema;
  // Fields of the schema that steps change.
  std::vector<std::string> variables = {};
  // The numbers of a step that the update reads.
  std::vector<std::string> columns = {"lr", "wd", "rescale_grad"};
  bool aggregates = false;     // all weights of one dtype are updated together; their updates are counted first
  bool native_master = false;  // there are operators for the weight and its float32 copy
  bool lazy = false;           // lazy_update: a row_sparse gradient changes its own rows only
  bool draws = false;          // the columns contain the key of random numbers; computing the columns advances it
  bool by_element = true;      // each element is updated from itself, its gradient and its states: no norms, no rows
  bool rate_before_count = false;  // the learning rate is computed from the number of updates before this one

  std::function<StateLayout(const Settings&)> states;
  std::function<void(const Settings&, UpdateBuilder&)> build;
  // The columns for one weight. Unset: lr, wd, rescale_grad and t, for those columns that exist.
  std::function<std::vector<double>(Settings&, const UpdateItem&)> rates = nullptr;
  // The index of the program for update number t of a weight. Unset: there is one program.
  std::function<int64_t(const Settings&, std::string_view weight, int64_t t)> variant = nullptr;
  // Changes variables before the columns are computed. base_lr: without multipliers.
  std::function<void(Settings&, double base_lr)> begin = nullptr;

  // The attribute name of a field in Python's class, which is its name in files of states.
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
// Finds a rule by name, in any case. Throws a ValueError that lists the rules.
const Rule& rule(std::string_view name);

// Functions that the files of the table share. make_rule adds the settings that every optimizer has.
std::unique_ptr<Rule> make_rule(const char* name, const char* doc, double learning_rate = 0.01);
StateLayout no_state(const Settings&);
StateLayout one_state(const char* name);
StateLayout tuple_of(std::initializer_list<const char*> names);
// Adds clip_gradient to the attributes of an update operator, if it is set.
UpdateBuilder::Attributes with_clip(const Settings& s, UpdateBuilder::Attributes attributes,
                                    const char* name = "clip_gradient");

// Adds the setting momentum, and its state if it is not 0.
void add_momentum(Rule& rule, double value = 0.0);
// A step of SGD along grad; with momentum if there is a state for it. The momentum is a setting, or a column.
void build_descent(const Settings& s, UpdateBuilder& b, const Term& grad, bool momentum_is_rate = false);

using RuleList = std::vector<std::unique_ptr<Rule>>;
void add_descent_rules(RuleList& list);      // descent.cc: SGD and related optimizers
void add_large_batch_rules(RuleList& list);  // large_batch.cc: LARS, LBSGD
void add_moment_rules(RuleList& list);       // moments.cc: Adam and related optimizers
void add_adaptive_rules(RuleList& list);     // adaptive.cc: AdaGrad, RMSProp, ...

}  // namespace hybridnet::optimizer
