// An update as data: the operators that change one weight and its optimizer states. Imperative steps run it on arrays
// (update.h); compiled training steps convert it to nodes (python/hybridnet/optimizer/_graph_updates.py).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/base.h"
#include "optimizer/settings.h"

namespace hybridnet::optimizer {

struct Operand {
  enum class Kind : int8_t { kWeight, kGrad, kState, kMaster, kResult, kRates };
  Kind kind = Kind::kWeight;
  size_t index = 0;  // index of a state, or of the call that computes the result
  bool operator==(const Operand&) const = default;
};

// One operator call. Attributes that change with the step are read from the step's numbers: `rates` names their
// columns.
struct UpdateCall {
  std::string op;
  std::vector<Operand> inputs;
  std::vector<std::pair<std::string, AttrValue>> attributes;
  std::vector<std::pair<std::string, std::string>> rates;  // attribute, column
  Operand target{Operand::Kind::kResult, 0};               // the destination of the output; a result: a new array
  std::string many;              // the operator for any number of weights, which takes lr, wd, eta as lists; "": none
  bool is_update = false;        // an update operator, which replaces the weight and the states among its inputs
  std::optional<Operand> row{};  // the result that holds the numbers of this call, instead of the step's numbers
};

struct UpdateProgram {
  std::vector<UpdateCall> calls;
};

// A number of the step, identified by its column.
struct Rate {
  const char* column;
};

class UpdateBuilder;

// An operand in a formula: an operator on it adds a call to the program.
class Term {
 public:
  Term(UpdateBuilder& builder, Operand operand) : builder_(&builder), operand_(operand) {}
  const Operand& operand() const { return operand_; }
  UpdateBuilder& builder() const { return *builder_; }

 private:
  UpdateBuilder* builder_;
  Operand operand_;
};

// The weight to which the program is applied.
struct UpdateSubject {
  DType dtype = DType::kFloat32;
  bool has_master = false;        // there is a float32 copy, which the program updates
  std::vector<bool> has_state{};  // one per state of the layout
  int64_t variant = 0;            // Rule::variant
  bool operator==(const UpdateSubject&) const = default;
};

class UpdateBuilder {
 public:
  // native_master: the optimizer has operators for a weight with a float32 copy. Otherwise the program runs on the
  // copy, between two casts.
  UpdateBuilder(UpdateSubject subject, bool native_master);

  const UpdateSubject& subject() const { return subject_; }
  bool uses_native_master() const { return subject_.has_master && native_; }
  bool has_state(size_t i) const { return subject_.has_state[i]; }
  DType dtype() const { return subject_.has_master && !native_ ? DType::kFloat32 : subject_.dtype; }
  Term weight() { return {*this, weight_}; }
  Term grad() { return {*this, grad_}; }
  Term state(size_t i) { return {*this, {Operand::Kind::kState, i}}; }
  Term master() { return {*this, {Operand::Kind::kMaster, 0}}; }
  // The numbers of the step as an array, float64 (1, columns).
  Term rates() { return {*this, {Operand::Kind::kRates, 0}}; }
  // Subsequent calls read their numbers from this array.
  void use_rates(const Term& row) { row_ = row.operand(); }

  using Attributes = std::vector<std::pair<std::string, AttrValue>>;
  using Rates = std::vector<std::pair<std::string, std::string>>;
  Term call(const char* op, const std::vector<Term>& inputs, Attributes attributes = {}, Rates rates = {});
  // Adds an update operator, which replaces the weight and the states among its inputs. rates: names of the attributes
  // that are columns of the same name.
  void update(const char* op, const std::vector<Term>& inputs, Attributes attributes, const std::string& rates,
              const char* many = "");
  // The same for an operator whose output is a step, not a weight.
  Term step(const char* op, const std::vector<Term>& inputs, Attributes attributes, const std::string& rates);
  void assign(const Term& target, const Term& value);
  // grad * rescale_grad, clipped.
  Term scaled_grad(const Settings& s);
  Term clipped(const Term& value, const Settings& s);

  UpdateProgram finish();

 private:
  UpdateSubject subject_;
  bool native_;
  Operand weight_, grad_;
  std::optional<Operand> row_;
  UpdateProgram program_;
};

Term operator+(const Term& a, const Term& b);
Term operator-(const Term& a, const Term& b);
Term operator*(const Term& a, const Term& b);
Term operator/(const Term& a, const Term& b);
Term operator+(const Term& a, double b);
Term operator*(double a, const Term& b);
Term operator/(const Term& a, double b);
Term operator*(Rate a, const Term& b);
Term operator/(const Term& a, Rate b);
Term sqrt(const Term& a);

}  // namespace hybridnet::optimizer
