// Maximum, minimum, power, remainder, hypotenuse with broadcasting.
#include "ops/broadcast/declare.h"
#include "ops/elementwise/power_rule.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kGreaterEqual{"broadcast_greater_equal"}, kLesserEqual{"broadcast_lesser_equal"},
    kGreater{"broadcast_greater"}, kLesser{"broadcast_lesser"}, kPower{"broadcast_power"}, kFloor{"floor"};

// If both elements are equal, lhs receives the gradient.
auto chosen_gradient(const OpRef& takes_lhs, const OpRef& takes_rhs) {
  return [&takes_lhs, &takes_rhs](const NoParams&, const GradientContext& g) -> Values {
    const Value dy = g.output_grad(0), l = g.input(0), r = g.input(1);
    return {g.wants(0) ? to_operand(g, 0, dy * call(takes_lhs, {l, r})) : Value{},
            g.wants(1) ? to_operand(g, 1, dy * call(takes_rhs, {l, r})) : Value{}};
  };
}

Values power_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0), l = g.input(0), r = g.input(1);
  return {g.wants(0) ? to_operand(g, 0, dy * power_by_base(kPower, l, r)) : Value{},
          g.wants(1) ? to_operand(g, 1, dy * power_by_exponent(l, r, g.output(0))) : Value{}};
}

// The gradient of integers is 0, which follows MXNet.
Values mod_gradient(const NoParams&, const GradientContext& g) {
  if (!is_floating(g.output_spec(0).dtype)) return Values(2);
  const Value dy = g.output_grad(0);
  return {g.wants(0) ? to_operand(g, 0, dy) : Value{},
          g.wants(1) ? -to_operand(g, 1, dy * call(kFloor, {g.input(0) / g.input(1)})) : Value{}};
}

Values hypot_gradient(const NoParams&, const GradientContext& g) {
  const Value scaled = g.output_grad(0) / g.output(0);
  return {g.wants(0) ? to_operand(g, 0, scaled * g.input(0)) : Value{},
          g.wants(1) ? to_operand(g, 1, scaled * g.input(1)) : Value{}};
}

}  // namespace

void register_broadcast_extremes(OpRegistry& ops) {
  broadcast_op<Pointwise::kMaximum>(ops, "broadcast_maximum",
                                    "The larger element, with broadcasting; NaN if either is NaN.")
      .gradient(chosen_gradient(kGreaterEqual, kLesser), Saves::all_inputs())
      .commutative()
      .amp(AmpType::kWidest)
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 4}, {3, 1}});
  broadcast_op<Pointwise::kMinimum>(ops, "broadcast_minimum",
                                    "The smaller element, with broadcasting; NaN if either is NaN.")
      .gradient(chosen_gradient(kLesserEqual, kGreater), Saves::all_inputs())
      .commutative()
      .amp(AmpType::kWidest)
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 4}, {3, 1}});
  broadcast_op<Pointwise::kPower>(
      ops, "broadcast_power", "lhs to the power of rhs, with broadcasting. Integers wrap around; 1 / lhs^-rhs below 0.")
      .gradient(power_gradient, Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0)
      .sample({{2, 3, 1}, {1, 4}}, {}, 0.5, 2.0);
  const char* jumps = "jumps at multiples";
  broadcast_op<Pointwise::kMod>(ops, "broadcast_mod",
                                "Remainder of lhs / rhs with the sign of rhs, with broadcasting; 0 where rhs is 0.")
      .gradient(mod_gradient, Saves::all_inputs())
      .amp(AmpType::kWidest)
      .sample({.inputs = {{3, 4}, {3, 4}}, .low = 0.5, .high = 2.0, .check_gradient = false, .note = jumps})
      .sample({.inputs = {{2, 3, 1}, {1, 4}}, .low = 0.5, .high = 2.0, .check_gradient = false, .note = jumps});
  broadcast_op<Pointwise::kHypot>(ops, "broadcast_hypot", "sqrt(lhs^2 + rhs^2) without overflow, with broadcasting.")
      .gradient(hypot_gradient, Saves::all())
      .commutative()
      .amp(AmpType::kFloat)
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0)
      .sample({{2, 3, 1}, {1, 4}}, {}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
