// Maximum, minimum, power, remainder, hypotenuse of two arrays of equal shape and dtype.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"
#include "ops/elementwise/power_rule.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kGreaterEqual{"_greater_equal"}, kLesserEqual{"_lesser_equal"}, kGreater{"_greater"}, kLesser{"_lesser"},
    kPower{"_power"}, kFloor{"floor"};

template <Pointwise F>
OpBuilder<NoParams> binary(OpRegistry& ops, const char* name, const char* alias, const char* doc,
                           DTypeSet dtypes = kNumeric) {
  auto op = ops.declare(name);
  op.doc(doc).alias(alias).input("lhs", "first array").input("rhs", "second array, shape and dtype of lhs");
  elementwise<F>(op, dtypes).amp(AmpType::kWidest);
  return op;
}

// If both elements are equal, lhs receives the gradient.
auto chosen_gradient(const OpRef& takes_lhs, const OpRef& takes_rhs) {
  return [&takes_lhs, &takes_rhs](const NoParams&, const GradientContext& g) -> Values {
    const Value dy = g.output_grad(0), l = g.input(0), r = g.input(1);
    return {g.wants(0) ? dy * call(takes_lhs, {l, r}) : Value{}, g.wants(1) ? dy * call(takes_rhs, {l, r}) : Value{}};
  };
}

Values power_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0), l = g.input(0), r = g.input(1);
  return {g.wants(0) ? dy * power_by_base(kPower, l, r) : Value{},
          g.wants(1) ? dy * power_by_exponent(l, r, g.output(0)) : Value{}};
}

// The gradient of integers is 0, which follows MXNet.
Values mod_gradient(const NoParams&, const GradientContext& g) {
  if (!is_floating(g.output_spec(0).dtype)) return Values(2);
  const Value dy = g.output_grad(0);
  return {g.wants(0) ? dy : Value{}, g.wants(1) ? -(dy * call(kFloor, {g.input(0) / g.input(1)})) : Value{}};
}

Values hypot_gradient(const NoParams&, const GradientContext& g) {
  const Value scaled = g.output_grad(0) / g.output(0);
  return {g.wants(0) ? scaled * g.input(0) : Value{}, g.wants(1) ? scaled * g.input(1) : Value{}};
}

}  // namespace

void register_elemwise_extremes(OpRegistry& ops) {
  binary<Pointwise::kMaximum>(ops, "_maximum", "_Maximum", "The larger element; NaN if either is NaN.", kAllDTypes)
      .gradient(chosen_gradient(kGreaterEqual, kLesser), Saves::all_inputs())
      .commutative()
      .sparse(SparseForm::kUnion)
      .sample({{3, 4}, {3, 4}});
  binary<Pointwise::kMinimum>(ops, "_minimum", "_Minimum", "The smaller element; NaN if either is NaN.", kAllDTypes)
      .gradient(chosen_gradient(kLesserEqual, kGreater), Saves::all_inputs())
      .commutative()
      .sparse(SparseForm::kUnion)
      .sample({{3, 4}, {3, 4}});
  binary<Pointwise::kPower>(ops, "_power", "_Power",
                            "lhs to the power of rhs. Integers wrap around; 1 / lhs^-rhs below 0.")
      .gradient(power_gradient, Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0);
  binary<Pointwise::kMod>(ops, "_mod", "_Mod", "Remainder of lhs / rhs with the sign of rhs; 0 where rhs is 0.")
      .gradient(mod_gradient, Saves::all_inputs())
      .sample(
          {.inputs = {{3, 4}, {3, 4}}, .low = 0.5, .high = 2.0, .check_gradient = false, .note = "jumps at multiples"});
  binary<Pointwise::kHypot>(ops, "_hypot", "_Hypot", "sqrt(lhs^2 + rhs^2) without overflow.")
      .gradient(hypot_gradient, Saves::all())
      .commutative()
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kUnion)
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
