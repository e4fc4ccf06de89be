// Exponentials and logarithms.
#include "hybridnet/op.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

// d/dx = factor / (x + shift)
auto reciprocal_gradient(double factor, double shift) {
  return [factor, shift](const NoParams&, const GradientContext& g) -> Values {
    Value x = shift == 0 ? g.input(0) : g.input(0) + shift;
    Value dy = factor == 1 ? g.output_grad(0) : g.output_grad(0) * factor;
    return {dy / x};
  };
}

}  // namespace

void register_exponentials(OpRegistry& ops) {
  unary<Pointwise::kExp>(ops, "exp", "e to the power of x.")
      .alias("_sparse_exp")
      .gradient([](const NoParams&, const GradientContext& g) -> Values { return {g.output_grad(0) * g.output(0)}; },
                Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}})
      .sample({Shape{0, 4}});
  unary<Pointwise::kExpm1>(ops, "expm1", "e to the power of x, minus 1, exact for small x.")
      .alias("_sparse_expm1")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values { return {g.output_grad(0) * (g.output(0) + 1.0)}; },
          Saves::all_outputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}});
  unary<Pointwise::kLog>(ops, "log", "Natural logarithm.")
      .alias("_sparse_log")
      .gradient(reciprocal_gradient(1, 0), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.2, 4.0);
  unary<Pointwise::kLog2>(ops, "log2", "Logarithm to base 2.")
      .alias("_sparse_log2")
      .gradient(reciprocal_gradient(1.44269504088896340737, 0), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.2, 4.0);
  unary<Pointwise::kLog10>(ops, "log10", "Logarithm to base 10.")
      .alias("_sparse_log10")
      .gradient(reciprocal_gradient(0.43429448190325182765, 0), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, 0.2, 4.0);
  unary<Pointwise::kLog1p>(ops, "log1p", "log(1 + x), exact for small x.")
      .alias("_sparse_log1p")
      .gradient(reciprocal_gradient(1, 1), Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {}, -0.8, 3.0);
}

}  // namespace hybridnet::ops
