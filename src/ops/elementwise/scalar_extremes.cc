// Maximum, minimum, power, remainder, hypotenuse of an array and a number.
#include <cmath>

#include "hybridnet/op.h"
#include "kernels/elementwise/half_power.h"
#include "ops/elementwise/scalar.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kGreaterEqualScalar{"_greater_equal_scalar"}, kLesserEqualScalar{"_lesser_equal_scalar"},
    kPowerScalar{"_power_scalar"}, kRDivScalar{"_rdiv_scalar"}, kFloor{"floor"};

auto chosen_gradient(const OpRef& takes_data) {
  return [&takes_data](const ScalarParams& p, const GradientContext& g) -> Values {
    return {g.output_grad(0) * call(takes_data, {g.input(0)}, {{"scalar", p.scalar}})};
  };
}

// Computes powers that need no logarithm. The result is bit-equal to that of the general power, or more accurate.
bool run_easy_power(double exponent, DType dtype, const void* data, void* out, int64_t n, bool parallel) {
  const kernels::SpanLoops* loops = nullptr;
  if (exponent == 2)
    loops = &kernels::loops(Pointwise::kSquare);
  else if (exponent == 3)
    loops = &kernels::loops(Pointwise::kCube);
  else if (exponent == 1)
    loops = &kernels::loops(Pointwise::kCopy);
  else if (exponent == -1 && is_floating(dtype))
    loops = &kernels::loops(Pointwise::kReciprocal);
  else if (exponent == 0.5 && is_floating(dtype))
    loops = &kernels::half_power_loops();
  else
    return false;
  const void* in[] = {data};
  (parallel ? kernels::apply_parallel : kernels::apply)(*loops, dtype, in, out, n, nullptr, kernels::Repeat::kNone);
  return true;
}

void power_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  const double exponent = static_cast<const ScalarParams*>(params)->scalar;
  if (run_easy_power(exponent, dtype, in[0], out, n, false)) return;
  apply_scalar<Pointwise::kPower, kScalarRight>(exponent, dtype, in[0], out, n, false);
}

void run_power(const ScalarParams& p, const KernelArgs& a) {
  if (a.in[0].dtype == a.out[0].dtype &&
      run_easy_power(p.scalar, a.in[0].dtype, a.in[0].data, a.out[0].data, a.out[0].size(), true))
    return;
  run_scalar<Pointwise::kPower, kScalarRight>(p, a);
}

Values power_gradient(const ScalarParams& p, const GradientContext& g) {
  if (p.scalar == 0) return Values(1);
  const Value slope = call(kPowerScalar, {g.input(0)}, {{"scalar", p.scalar - 1}}) * p.scalar;
  return {g.output_grad(0) * slope};
}

void register_powers_of_numbers(OpRegistry& ops) {
  scalar_op<Pointwise::kPower, kScalarRight>(ops, "_power_scalar", "data to the power of scalar.")
      .alias("_PowerScalar")
      .any_device()
      .cpu(run_power)
      .pointwise(&power_span)
      .gradient(power_gradient, Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {{"scalar", "1.5"}}, 0.5, 2.0)
      .sample({{3, 4}}, {{"scalar", "2"}})
      .sample({{3, 4}}, {{"scalar", "3"}});
  scalar_op<Pointwise::kPower, kScalarLeft>(ops, "_rpower_scalar", "scalar to the power of data.")
      .alias("_RPowerScalar")
      .gradient(
          [](const ScalarParams& p, const GradientContext& g) -> Values {
            if (p.scalar == 0) return {zeros_like(g.output(0))};  // 0 * log(0) would be NaN
            return {g.output_grad(0) * g.output(0) * std::log(p.scalar)};
          },
          Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {{"scalar", "1.5"}});
}

// The gradient of integers is 0, which follows MXNet.
Values mod_gradient(const ScalarParams&, const GradientContext& g) {
  return {is_floating(g.output_spec(0).dtype) ? g.output_grad(0) : Value{}};
}

Values rmod_gradient(const ScalarParams& p, const GradientContext& g) {
  if (!is_floating(g.output_spec(0).dtype)) return Values(1);
  return {-(g.output_grad(0) * call(kFloor, {call(kRDivScalar, {g.input(0)}, {{"scalar", p.scalar}})}))};
}

void register_remainders(OpRegistry& ops) {
  scalar_op<Pointwise::kMod, kScalarRight>(ops, "_mod_scalar",
                                           "Remainder of data / scalar with the sign of scalar; 0 for scalar 0.")
      .alias("_ModScalar")
      .gradient(mod_gradient, Saves::nothing())
      .sample(
          {.inputs = {{3, 4}}, .attrs = {{"scalar", "1.5"}}, .check_gradient = false, .note = "jumps at multiples"});
  scalar_op<Pointwise::kMod, kScalarLeft>(ops, "_rmod_scalar",
                                          "Remainder of scalar / data with the sign of data; 0 where data is 0.")
      .alias("_RModScalar")
      .gradient(rmod_gradient, Saves::all_inputs())
      .sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "5.5"}},
               .low = 0.7,
               .high = 2,
               .check_gradient = false,
               .note = "jumps"});
}

}  // namespace

void register_scalar_extremes(OpRegistry& ops) {
  scalar_op<Pointwise::kMaximum, kScalarRight>(ops, "_maximum_scalar", "The larger of data and scalar.")
      .alias("_MaximumScalar")
      .gradient(chosen_gradient(kGreaterEqualScalar), Saves::all_inputs())
      .sample({{3, 4}}, {{"scalar", "0.5"}});
  scalar_op<Pointwise::kMinimum, kScalarRight>(ops, "_minimum_scalar", "The smaller of data and scalar.")
      .alias("_MinimumScalar")
      .gradient(chosen_gradient(kLesserEqualScalar), Saves::all_inputs())
      .sample({{3, 4}}, {{"scalar", "0.5"}});
  register_powers_of_numbers(ops);
  register_remainders(ops);
  scalar_op<Pointwise::kHypot, kScalarRight>(ops, "_hypot_scalar", "sqrt(data^2 + scalar^2) without overflow.")
      .alias("_HypotScalar")
      .gradient([](const ScalarParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) * (g.input(0) / g.output(0))}; },
                Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {{"scalar", "1.5"}});
}

}  // namespace hybridnet::ops
