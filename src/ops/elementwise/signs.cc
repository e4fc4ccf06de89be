// Sign and magnitude.
#include "hybridnet/op.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;
const OpRef kSign{"sign"};
}  // namespace

void register_signs(OpRegistry& ops) {
  unary<Pointwise::kNegative>(ops, "negative", "-x.")
      .alias("_sparse_negative")
      .alias("_npi_negative")
      .gradient([](const NoParams&, const GradientContext& g) -> Values { return {-g.output_grad(0)}; },
                Saves::nothing())
      .keeps_zeros()
      .sample({{3, 4}});
  unary<Pointwise::kAbs>(ops, "abs", "Absolute value; its gradient at 0 is 0.")
      .alias("_sparse_abs")
      .alias("_npi_absolute")
      .alias("_npi_abs")
      .gradient([](const NoParams&,
                   const GradientContext& g) -> Values { return {g.output_grad(0) * call(kSign, {g.input(0)})}; },
                Saves::all_inputs())
      .sparse(SparseForm::kOnValues, SparseGradient::kOnSparse)
      .sample({{3, 4}});
  unary<Pointwise::kSign>(ops, "sign", "-1, 0 or 1; its gradient is 0.")
      .alias("_sparse_sign")
      .alias("_npi_sign")
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{3, 4}});
}

}  // namespace hybridnet::ops
