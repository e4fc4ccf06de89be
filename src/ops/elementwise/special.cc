// Error functions, gamma functions, cube roots.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kExp{"exp"}, kSquare{"square"}, kPolygamma{"_polygamma"};

constexpr double kTwoOverSqrtPi = 1.12837916709551257390, kHalfSqrtPi = 0.88622692545275801365;

Value polygamma(int order, const Value& x) { return call(kPolygamma, {x}, {{"order", order}}); }

struct PolygammaParams {
  int32_t order;
  static void describe(ParamSchema<PolygammaParams>& schema) {
    schema.field("order", &PolygammaParams::order)
        .default_value(0)
        .range(0, 100)
        .doc("0: digamma; n: its n-th derivative.");
  }
};

void register_error_functions(OpRegistry& ops) {
  unary<Pointwise::kErf>(ops, "erf", "Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x.")
      .alias("_npx_erf")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) * (call(kExp, {-call(kSquare, {g.input(0)})}) * kTwoOverSqrtPi)};
          },
          Saves::all_inputs())
      .sample({{3, 4}});
  unary<Pointwise::kErfinv>(ops, "erfinv", "Inverse of the error function; NaN outside [-1, 1].")
      .alias("_npx_erfinv")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) * (call(kExp, {call(kSquare, {g.output(0)})}) * kHalfSqrtPi)};
          },
          Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -0.9, 0.9);
}

void register_gamma_functions(OpRegistry& ops) {
  unary<Pointwise::kGamma>(ops, "gamma", "Gamma function.")
      .alias("_sparse_gamma")
      .alias("_npx_gamma")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) * g.output(0) * polygamma(0, g.input(0))};
          },
          Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.5, 4.0);
  unary<Pointwise::kGammaln>(ops, "gammaln", "Logarithm of the magnitude of the gamma function.")
      .alias("_sparse_gammaln")
      .alias("_npx_gammaln")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) * polygamma(0, g.input(0))}; },
                Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.5, 4.0);
  ops.declare<PolygammaParams>("_polygamma")
      .doc("Derivatives of the logarithm of the gamma function; NaN at 0, -1, -2, ...")
      .internal()
      .input("data", "array of any shape")
      .output("out", "shape and dtype of data")
      .infer([](const PolygammaParams&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu(
          [](const PolygammaParams& p, const KernelArgs& a) {
            const double order = p.order;
            const void* in[] = {a.in[0].data};
            kernels::apply_parallel(span_loops<Pointwise::kPolygamma>(), a.in[0].dtype, in, a.out[0].data,
                                    a.out[0].size(), &order);
          },
          kFloating)
      .inplace(0, 0)
      .gradient(
          [](const PolygammaParams& p, const GradientContext& g) -> Values {
            return {g.output_grad(0) * polygamma(p.order + 1, g.input(0))};
          },
          Saves::all_inputs())
      .sample({{3, 4}}, {}, 0.5, 4.0)
      .sample({{3, 4}}, {{"order", "1"}}, 0.5, 4.0);
}

void register_cube_roots(OpRegistry& ops) {
  unary<Pointwise::kCbrt>(ops, "cbrt", "Cube root.")
      .alias("_sparse_cbrt")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) / (call(kSquare, {g.output(0)}) * 3.0)};
          },
          Saves::all_outputs())
      .sample({{3, 4}}, {}, 0.3, 4.0);
  unary<Pointwise::kRcbrt>(ops, "rcbrt", "1 / cube root.")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) * (g.output(0) / g.input(0)) * (-1.0 / 3.0)};
          },
          Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.3, 4.0);
}

}  // namespace

void register_special(OpRegistry& ops) {
  register_error_functions(ops);
  register_gamma_functions(ops);
  register_cube_roots(ops);
}

}  // namespace hybridnet::ops
