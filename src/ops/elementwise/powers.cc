// Squares, roots, reciprocals.
#include "hybridnet/op.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kSquare{"square"}, kSquareGrad{"_backward_square"}, kSqrtGrad{"_backward_sqrt"};

}  // namespace

void register_powers(OpRegistry& ops) {
  unary<Pointwise::kSquare>(ops, "square", "x * x.")
      .alias("_sparse_square")
      .alias("_npi_square")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {call(kSquareGrad, {g.output_grad(0), g.input(0)})};
          },
          Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kOnValues, SparseGradient::kOnSparse)
      .sample({{3, 4}})
      .sample({Shape{0}});
  gradient_helper<Pointwise::kSquareGrad>(ops, "_backward_square", "out_grad * 2 * data.", "data")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0);
            return {g.wants(0) ? call(kSquareGrad, {dy, g.input(1)}) : Value{},
                    g.wants(1) ? call(kSquareGrad, {dy, g.input(0)}) : Value{}};
          },
          Saves::all_inputs())
      .sparse(SparseForm::kProduct)
      .sample({{3, 4}, {3, 4}});

  unary<Pointwise::kSqrt>(ops, "sqrt", "Square root; NaN for negative x.")
      .alias("_sparse_sqrt")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {call(kSqrtGrad, {g.output_grad(0), g.output(0)})};
          },
          Saves::all_outputs())
      .sample({{3, 4}}, {}, 0.2, 4.0);
  gradient_helper<Pointwise::kSqrtGrad>(ops, "_backward_sqrt", "out_grad / (2 * root).", "root")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0);
            return {g.wants(0) ? call(kSqrtGrad, {dy, g.input(1)}) : Value{},
                    g.wants(1) ? -(dy * g.output(0)) / g.input(1) : Value{}};
          },
          Saves::of({1}, {0}))
      .sample({{3, 4}, {3, 4}}, {}, 0.3, 2.0);

  unary<Pointwise::kRsqrt>(ops, "rsqrt", "1 / sqrt(x).")
      .alias("_sparse_rsqrt")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0) * -0.5 * (g.output(0) / g.input(0))};
          },
          Saves::all())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.3, 4.0);
  unary<Pointwise::kReciprocal>(ops, "reciprocal", "1 / x; integers: rounded toward zero, 0 for 0.")
      .alias("_npi_reciprocal")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {-(g.output_grad(0) * call(kSquare, {g.output(0)}))}; },
                Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.3, 4.0);
}

}  // namespace hybridnet::ops
