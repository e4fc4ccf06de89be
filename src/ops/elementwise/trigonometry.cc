// Trigonometric and hyperbolic functions and their inverses.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kSin{"sin"}, kCos{"cos"}, kSinh{"sinh"}, kCosh{"cosh"}, kSquare{"square"}, kRsqrt{"rsqrt"};

Value square(const Value& x) { return call(kSquare, {x}); }
Value rsqrt(const Value& x) { return call(kRsqrt, {x}); }

// d/dx = slope(x), computed from the input.
template <typename Slope>
auto by_input(Slope slope) {
  return
      [slope](const NoParams&, const GradientContext& g) -> Values { return {g.output_grad(0) * slope(g.input(0))}; };
}

void register_circular(OpRegistry& ops) {
  unary<Pointwise::kSin>(ops, "sin", "Sine; x in radians.")
      .alias("_sparse_sin")
      .gradient(by_input([](const Value& x) { return call(kCos, {x}); }), Saves::all_inputs())
      .sample({{3, 4}});
  unary<Pointwise::kCos>(ops, "cos", "Cosine; x in radians.")
      .alias("_sparse_cos")
      .gradient(by_input([](const Value& x) { return -call(kSin, {x}); }), Saves::all_inputs())
      .sample({{3, 4}});
  unary<Pointwise::kTan>(ops, "tan", "Tangent; x in radians.")
      .alias("_sparse_tan")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) * (square(g.output(0)) + 1.0)}; },
                Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -1.2, 1.2);
  unary<Pointwise::kArcsin>(ops, "arcsin", "Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].")
      .alias("_sparse_arcsin")
      .gradient(by_input([](const Value& x) { return rsqrt(1.0 - square(x)); }), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -0.9, 0.9);
  unary<Pointwise::kArccos>(ops, "arccos", "Inverse cosine, in [0, pi]; NaN outside [-1, 1].")
      .alias("_sparse_arccos")
      .gradient(by_input([](const Value& x) { return -rsqrt(1.0 - square(x)); }), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -0.9, 0.9);
  unary<Pointwise::kArctan>(ops, "arctan", "Inverse tangent, in [-pi/2, pi/2].")
      .alias("_sparse_arctan")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) / (square(g.input(0)) + 1.0)}; },
                Saves::all_inputs())
      .sample({{3, 4}});
}

void register_hyperbolic(OpRegistry& ops) {
  unary<Pointwise::kSinh>(ops, "sinh", "Hyperbolic sine.")
      .alias("_sparse_sinh")
      .gradient(by_input([](const Value& x) { return call(kCosh, {x}); }), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}});
  unary<Pointwise::kCosh>(ops, "cosh", "Hyperbolic cosine.")
      .alias("_sparse_cosh")
      .gradient(by_input([](const Value& x) { return call(kSinh, {x}); }), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}});
  unary<Pointwise::kArcsinh>(ops, "arcsinh", "Inverse hyperbolic sine.")
      .alias("_sparse_arcsinh")
      .gradient(by_input([](const Value& x) { return rsqrt(square(x) + 1.0); }), Saves::all_inputs())
      .sample({{3, 4}});
  unary<Pointwise::kArccosh>(ops, "arccosh", "Inverse hyperbolic cosine; NaN below 1.")
      .alias("_sparse_arccosh")
      .gradient(by_input([](const Value& x) { return rsqrt(square(x) - 1.0); }), Saves::all_inputs())
      .sample({{3, 4}}, {}, 1.2, 4.0);
  unary<Pointwise::kArctanh>(ops, "arctanh", "Inverse hyperbolic tangent; NaN outside [-1, 1].")
      .alias("_sparse_arctanh")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) / (1.0 - square(g.input(0)))}; },
                Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -0.9, 0.9);
}

constexpr double kDegreesPerRadian = 57.295779513082320877, kRadiansPerDegree = 0.017453292519943295769;

template <const double& kFactor>
void scale_span(const void*, DType dtype, const void* const* in, void* out, int64_t n) {
  kernels::apply(span_loops<Pointwise::kScale>(), dtype, in, out, n, &kFactor);
}

// Multiplication by a constant that does not depend on the dtype of the array.
template <const double& kFactor>
OpBuilder<NoParams> scale(OpRegistry& ops, const char* name, const char* doc) {
  auto op = unary<Pointwise::kScale>(ops, name, doc);
  op.cpu(
        [](const NoParams&, const KernelArgs& a) {
          const void* in[] = {a.in[0].data};
          kernels::apply_parallel(span_loops<Pointwise::kScale>(), a.in[0].dtype, in, a.out[0].data, a.out[0].size(),
                                  &kFactor);
        },
        kNumeric)
      .pointwise(&scale_span<kFactor>)
      .gradient([](const NoParams&, const GradientContext& g) -> Values { return {g.output_grad(0) * kFactor}; },
                Saves::nothing())
      .sample({{3, 4}});
  return op;
}

}  // namespace

void register_trigonometry(OpRegistry& ops) {
  register_circular(ops);
  register_hyperbolic(ops);
  scale<kDegreesPerRadian>(ops, "degrees", "Radians to degrees.").alias("_sparse_degrees");
  scale<kRadiansPerDegree>(ops, "radians", "Degrees to radians.").alias("_sparse_radians");
}

}  // namespace hybridnet::ops
