// Rounding; the gradient is zero, except for the straight-through estimators.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

template <Pointwise F>
OpBuilder<NoParams> rounding(OpRegistry& ops, const char* name, const char* doc) {
  auto op = unary<F>(ops, name, doc);
  op.gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing()).sample({{3, 4}});
  return op;
}

Values pass(const NoParams&, const GradientContext& g) { return {g.output_grad(0)}; }

}  // namespace

void register_rounding(OpRegistry& ops) {
  rounding<Pointwise::kRound>(ops, "round", "Rounds to the nearest integer; halves away from zero.")
      .alias("_sparse_round");
  rounding<Pointwise::kRint>(ops, "rint", "Rounds to the nearest integer; halves to the lower one.")
      .alias("_sparse_rint")
      .alias("_npi_rint");
  rounding<Pointwise::kCeil>(ops, "ceil", "Rounds up to an integer.").alias("_sparse_ceil").alias("_npi_ceil");
  rounding<Pointwise::kFloor>(ops, "floor", "Rounds down to an integer.").alias("_sparse_floor").alias("_npi_floor");
  rounding<Pointwise::kTrunc>(ops, "trunc", "Rounds toward zero to an integer.")
      .alias("_sparse_trunc")
      .alias("_npi_trunc");
  rounding<Pointwise::kTrunc>(ops, "fix", "Rounds toward zero to an integer.").alias("_sparse_fix").alias("_npi_fix");
  rounding<Pointwise::kLogicalNot>(ops, "logical_not", "1 where x is 0, else 0.");
  unary<Pointwise::kRound>(ops, "_contrib_round_ste", "Rounds to the nearest integer; the gradient passes unchanged.")
      .alias("_sparse__contrib_round_ste")
      .gradient(pass, Saves::nothing())
      .sample({.inputs = {{3, 4}}, .check_gradient = false, .note = "straight-through: not the derivative"});
  unary<Pointwise::kSign>(ops, "_contrib_sign_ste", "-1, 0 or 1; the gradient passes unchanged.")
      .alias("_sparse__contrib_sign_ste")
      .gradient(pass, Saves::nothing())
      .sample({.inputs = {{3, 4}}, .check_gradient = false, .note = "straight-through: not the derivative"});
}

}  // namespace hybridnet::ops
