// Arithmetic of two arrays of equal shape and dtype.
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

template <Pointwise F>
OpBuilder<NoParams> binary(OpRegistry& ops, const char* name, const char* doc, DTypeSet dtypes = kAllDTypes) {
  auto op = ops.declare(name);
  op.doc(doc).input("lhs", "first array").input("rhs", "second array, shape and dtype of lhs");
  elementwise<F>(op, dtypes).amp(AmpType::kWidest);
  return op;
}

const OpRef kDivGrad{"_backward_div_rhs"};

}  // namespace

void register_elemwise_arithmetic(OpRegistry& ops) {
  binary<Pointwise::kAdd>(ops, "elemwise_add", "lhs + rhs; equal shapes.")
      .alias("_plus")
      .alias("_Plus")
      .alias("_add")
      .alias("_sparse_elemwise_add")
      .quantized({.op = "_contrib_quantized_elemwise_add", .gives_sums = true})
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0), g.output_grad(0)};
          },
          Saves::nothing())
      .commutative()
      .sparse(SparseForm::kSum, SparseGradient::kOnSparse)
      .keeps_zeros()
      .sample({{3, 4}, {3, 4}})
      .sample({Shape{0, 4}, Shape{0, 4}});
  binary<Pointwise::kAdd>(ops, "_grad_add", "lhs + rhs, the sum of the gradients of several uses.")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0), g.output_grad(0)};
          },
          Saves::nothing())
      .commutative()
      .sparse(SparseForm::kSum, SparseGradient::kOnSparse)
      .keeps_zeros()
      .sample({{3, 4}, {3, 4}});
  binary<Pointwise::kSub>(ops, "elemwise_sub", "lhs - rhs; equal shapes.")
      .alias("_minus")
      .alias("_Minus")
      .alias("_sub")
      .alias("_sparse_elemwise_sub")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {g.output_grad(0), g.wants(1) ? -g.output_grad(0) : Value{}};
          },
          Saves::nothing())
      .sparse(SparseForm::kUnion, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}});
  binary<Pointwise::kMul>(ops, "elemwise_mul", "lhs * rhs; equal shapes.")
      .alias("_mul")
      .alias("_Mul")
      .alias("_sparse_elemwise_mul")
      .quantized({.op = "_contrib_quantized_elemwise_mul", .gives_sums = true})
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0);
            return {g.wants(0) ? dy * g.input(1) : Value{}, g.wants(1) ? dy * g.input(0) : Value{}};
          },
          Saves::all_inputs())
      .commutative()
      .sparse(SparseForm::kProduct, SparseGradient::kOnSparse)
      .sample({{3, 4}, {3, 4}});
  binary<Pointwise::kDiv>(ops, "elemwise_div",
                          "lhs / rhs; equal shapes. Integers: rounded toward zero, 0 where rhs is 0.")
      .alias("_div")
      .alias("_Div")
      .alias("_sparse_elemwise_div")
      .alias("_scatter_elemwise_div")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0);
            return {g.wants(0) ? dy / g.input(1) : Value{},
                    g.wants(1) ? call(kDivGrad, {dy, g.output(0), g.input(1)}) : Value{}};
          },
          Saves::of({1}, {0}))
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0);

  auto helper = ops.declare("_backward_div_rhs");
  helper.doc("-(out_grad * quotient) / rhs: the gradient of a quotient to its divisor.")
      .input("out_grad", "output gradient")
      .input("quotient", "lhs / rhs")
      .input("rhs", "divisor")
      .internal();
  elementwise<Pointwise::kDivGrad>(helper, kNumeric)
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), rhs = g.input(2);
            return {g.wants(0) ? call(kDivGrad, {dy, g.input(1), rhs}) : Value{},
                    g.wants(1) ? call(kDivGrad, {dy, g.input(0), rhs}) : Value{},
                    g.wants(2) ? call(kDivGrad, {dy, g.output(0), rhs}) : Value{}};
          },
          Saves::all())
      .sample({{3, 4}, {3, 4}, {3, 4}}, {}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
