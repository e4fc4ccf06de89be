#include "optimizer/program.h"

#include <sstream>

namespace hybridnet::optimizer {
namespace {

std::vector<Operand> operands(const std::vector<Term>& terms) {
  std::vector<Operand> found;
  for (const Term& term : terms) found.push_back(term.operand());
  return found;
}

UpdateBuilder::Rates columns_of(const std::string& names) {
  UpdateBuilder::Rates rates;
  std::istringstream words(names);
  for (std::string name; words >> name;) rates.emplace_back(name, name);
  return rates;
}

Term binary(const char* op, const Term& a, const Term& b) { return a.builder().call(op, {a, b}); }
Term with_scalar(const char* op, const Term& a, double scalar) {
  return a.builder().call(op, {a}, {{"scalar", AttrValue(scalar)}});
}
Term with_rate(const char* op, const Term& a, Rate rate) {
  return a.builder().call(op, {a}, {}, {{"scalar", rate.column}});
}

}  // namespace

UpdateBuilder::UpdateBuilder(UpdateSubject subject, bool native_master)
    : subject_(std::move(subject)), native_(native_master), grad_{Operand::Kind::kGrad, 0} {
  if (!subject_.has_master || native_) return;
  weight_ = {Operand::Kind::kMaster, 0};
  grad_ = call("Cast", {Term(*this, grad_)}, {{"dtype", "float32"}}).operand();
}

Term UpdateBuilder::call(const char* op, const std::vector<Term>& inputs, Attributes attributes, Rates rates) {
  const Operand result{Operand::Kind::kResult, program_.calls.size()};
  program_.calls.push_back({op, operands(inputs), std::move(attributes), std::move(rates), result, "", false, row_});
  return {*this, result};
}

Term UpdateBuilder::step(const char* op, const std::vector<Term>& inputs, Attributes attributes,
                         const std::string& rates) {
  return call(op, inputs, std::move(attributes), columns_of(rates));
}

void UpdateBuilder::update(const char* op, const std::vector<Term>& inputs, Attributes attributes,
                           const std::string& rates, const char* many) {
  step(op, inputs, std::move(attributes), rates);
  program_.calls.back().target = weight_;
  program_.calls.back().many = many;
  program_.calls.back().is_update = true;
}

void UpdateBuilder::assign(const Term& target, const Term& value) {
  const bool is_last = value.operand() == Operand{Operand::Kind::kResult, program_.calls.size() - 1};
  if (!is_last || program_.calls.back().target.kind != Operand::Kind::kResult) call("_copy", {value});
  program_.calls.back().target = target.operand();
}

Term UpdateBuilder::clipped(const Term& value, const Settings& s) {
  if (!s.clip_gradient) return value;
  return call("clip", {value}, {{"a_min", -*s.clip_gradient}, {"a_max", *s.clip_gradient}});
}

Term UpdateBuilder::scaled_grad(const Settings& s) { return clipped(Rate{"rescale_grad"} * grad(), s); }

UpdateProgram UpdateBuilder::finish() {
  if (subject_.has_master && !native_) {
    call("Cast", {weight()}, {{"dtype", dtype_name(subject_.dtype)}});
    program_.calls.back().target = {Operand::Kind::kWeight, 0};
  }
  return std::move(program_);
}

Term operator+(const Term& a, const Term& b) { return binary("elemwise_add", a, b); }
Term operator-(const Term& a, const Term& b) { return binary("elemwise_sub", a, b); }
Term operator*(const Term& a, const Term& b) { return binary("elemwise_mul", a, b); }
Term operator/(const Term& a, const Term& b) { return binary("elemwise_div", a, b); }
Term operator+(const Term& a, double b) { return with_scalar("_plus_scalar", a, b); }
Term operator*(double a, const Term& b) { return with_scalar("_mul_scalar", b, a); }
Term operator/(const Term& a, double b) { return with_scalar("_div_scalar", a, b); }
Term operator*(Rate a, const Term& b) { return with_rate("_mul_scalar", b, a); }
Term operator/(const Term& a, Rate b) { return with_rate("_div_scalar", a, b); }
Term sqrt(const Term& a) { return a.builder().call("sqrt", {a}); }

}  // namespace hybridnet::optimizer
