// Declares broadcasting operators of two arrays over the span functions of kernels/elementwise/pointwise.h.
#pragma once

#include "hybridnet/declare.h"
#include "kernels/elementwise/broadcast.h"
#include "ops/broadcast/infer_broadcast.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {

template <kernels::Pointwise F>
void run_broadcast(const KernelArgs& a) {
  const kernels::SpanLoops& loops = span_loops<F>();
  const TensorRef& lhs = a.in[0];
  const TensorRef& rhs = a.in[1];
  const TensorRef& out = a.out[0];
  if (*lhs.shape == *rhs.shape) {
    const void* in[2] = {lhs.data, rhs.data};
    return kernels::apply_parallel(loops, lhs.dtype, in, out.data, out.size());
  }
  kernels::apply_broadcast(loops, lhs.dtype, lhs.data, *lhs.shape, rhs.data, *rhs.shape, out.data, *out.shape);
}

template <kernels::Pointwise F>
OpBuilder<NoParams> broadcast_op(OpRegistry& ops, std::string name, std::string doc, DTypeSet dtypes = kAllDTypes) {
  auto op = ops.declare(std::move(name));
  op.doc(std::move(doc))
      .input("lhs", "first array")
      .input("rhs", "second array, same dtype; sizes are equal, or one of them is 1")
      .output("out", "dtype of the inputs, shape by NumPy's broadcasting rule")
      .infer([](const NoParams&, InferContext& c) { infer_broadcast_binary(c); })
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) { run_broadcast<F>(a); }, dtypes)
      .inplace(0, 0)
      .inplace(1, 0)
      .c_form(c_form_of(F))
      .neutral(neutral_numbers(F).right, neutral_numbers(F).left)
      .cost([](const NoParams&, auto in, auto out) { return elementwise_cost(span_loops<F>(), in, out); });
  op.op().pointwise = &pointwise_span<F>;  // for equal shapes only, hence not format_agnostic
  return op;
}

// Sums the gradient of an operand over the axes along which the operand was repeated.
inline Value to_operand(const GradientContext& g, int operand, const Value& gradient) {
  return sum_to(gradient, g.input_spec(operand).shape);
}

}  // namespace hybridnet::ops
