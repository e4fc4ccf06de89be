// Arithmetic with broadcasting.
#include "ops/broadcast/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kDivGrad{"_backward_div_rhs"};

Values add_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  return {g.wants(0) ? to_operand(g, 0, dy) : Value{}, g.wants(1) ? to_operand(g, 1, dy) : Value{}};
}

Values sub_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  return {g.wants(0) ? to_operand(g, 0, dy) : Value{}, g.wants(1) ? -to_operand(g, 1, dy) : Value{}};
}

Values mul_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  return {g.wants(0) ? to_operand(g, 0, dy * g.input(1)) : Value{},
          g.wants(1) ? to_operand(g, 1, dy * g.input(0)) : Value{}};
}

Values div_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  Value lhs, rhs;
  if (g.wants(0)) lhs = to_operand(g, 0, dy / g.input(1));
  if (g.wants(1)) {
    const bool equal = g.input_spec(1).shape == g.output_spec(0).shape;
    rhs = equal ? call(kDivGrad, {dy, g.output(0), g.input(1)})
                : -(to_operand(g, 1, dy * g.output(0)) / g.input(1));  // the divisor is constant along the summed axes
  }
  return {lhs, rhs};
}

}  // namespace

void register_broadcast_arithmetic(OpRegistry& ops) {
  broadcast_op<Pointwise::kAdd>(ops, "broadcast_add", "lhs + rhs with broadcasting.")
      .alias("broadcast_plus")
      .alias("_sparse_broadcast_add")
      .alias("_sparse_broadcast_plus")
      .gradient(add_gradient, Saves::nothing())
      .commutative()
      .amp(AmpType::kWidest)
      .sparse(SparseForm::kSum, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 4}, {3, 1}})
      .sample({Shape{1}, Shape{3, 4}})
      .sample({Shape{0, 4}, Shape{1, 4}});
  broadcast_op<Pointwise::kSub>(ops, "broadcast_sub", "lhs - rhs with broadcasting.")
      .alias("broadcast_minus")
      .alias("_sparse_broadcast_sub")
      .alias("_sparse_broadcast_minus")
      .gradient(sub_gradient, Saves::nothing())
      .amp(AmpType::kWidest)
      .sparse(SparseForm::kUnion, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}})
      .sample({{3, 1}, {2, 3, 4}});
  broadcast_op<Pointwise::kMul>(ops, "broadcast_mul", "lhs * rhs with broadcasting.")
      .alias("_sparse_broadcast_mul")
      .gradient(mul_gradient, Saves::all_inputs())
      .commutative()
      .amp(AmpType::kWidest)
      .sparse(SparseForm::kProduct, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 1}, {1, 3, 4}});
  broadcast_op<Pointwise::kDiv>(ops, "broadcast_div",
                                "lhs / rhs with broadcasting. Integers: rounded toward zero, 0 where rhs is 0.")
      .alias("_sparse_broadcast_div")
      .gradient(div_gradient, Saves::of({1}, {0}))
      .amp(AmpType::kWidest)
      .sparse(SparseForm::kQuotient)
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0)
      .sample({{2, 3, 4}, {4}}, {}, 0.5, 2.0)
      .sample({{4}, {2, 3, 4}}, {}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
