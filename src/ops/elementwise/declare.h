// Declares elementwise operators over the span functions of kernels/elementwise/pointwise.h. The function determines
// inference, kernel, cost, in-place and fusion traits; the operator adds names, docs, gradient and samples.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "hybridnet/declare.h"
#include "kernels/elementwise/pointwise.h"
#include "ops/emit.h"

namespace hybridnet::ops {

// All inputs and outputs have one shape and one dtype.
void infer_elementwise(InferContext& c);

// Nanoseconds on one core for n elements: arithmetic or memory, whichever is slower.
int64_t elementwise_cost(const kernels::SpanLoops& loops, std::span<const TensorSpec> in,
                         std::span<const TensorSpec> out);

template <kernels::Pointwise F>
const kernels::SpanLoops& span_loops() {
  static const kernels::SpanLoops& found = kernels::loops(F);
  return found;
}

// The span function of an operator without parameters.
template <kernels::Pointwise F>
void pointwise_span(const void*, DType dtype, const void* const* in, void* out, int64_t n) {
  kernels::apply(span_loops<F>(), dtype, in, out, n);
}

// F(x, right) = x and F(left, x) = x.
struct NeutralNumbers {
  std::optional<double> right, left;
};
constexpr NeutralNumbers neutral_numbers(kernels::Pointwise f) {
  switch (f) {
    case kernels::Pointwise::kAdd:
      return {0, 0};
    case kernels::Pointwise::kMul:
      return {1, 1};
    case kernels::Pointwise::kSub:
      return {0, {}};
    case kernels::Pointwise::kDiv:
    case kernels::Pointwise::kPower:
      return {1, {}};
    default:
      return {};
  }
}

// Functions with a form in C. Its results equal those of the vector loops to the bit.
constexpr CForm c_form_of(kernels::Pointwise f) {
  using kernels::Pointwise;
  switch (f) {
    case Pointwise::kAdd:
      return {"$a + $b"};
    case Pointwise::kSub:
      return {"$a - $b"};
    case Pointwise::kMul:
      return {"$a * $b"};
    case Pointwise::kDiv:
      return {.text = "$a / $b", .floats_only = true};
    case Pointwise::kMaximum:
      return {"$a > $b || $a != $a ? $a : $b"};
    case Pointwise::kMinimum:
      return {"$a < $b || $a != $a ? $a : $b"};
    case Pointwise::kEqual:
      return {"$a == $b ? ($t)1 : ($t)0"};
    case Pointwise::kNotEqual:
      return {"$a != $b ? ($t)1 : ($t)0"};
    case Pointwise::kGreater:
      return {"$a > $b ? ($t)1 : ($t)0"};
    case Pointwise::kGreaterEqual:
      return {"$a >= $b ? ($t)1 : ($t)0"};
    case Pointwise::kLesser:
      return {"$a < $b ? ($t)1 : ($t)0"};
    case Pointwise::kLesserEqual:
      return {"$a <= $b ? ($t)1 : ($t)0"};
    case Pointwise::kLogicalAnd:
      return {"$a != 0 & $b != 0 ? ($t)1 : ($t)0"};
    case Pointwise::kLogicalOr:
      return {"$a != 0 | $b != 0 ? ($t)1 : ($t)0"};
    case Pointwise::kNegative:
      return {"-$a"};
    case Pointwise::kAbs:
      return {.text = "$a < 0 ? -$a : $a + 0", .floats_only = true};
    case Pointwise::kRelu:
      return {"$a <= 0 ? ($t)0 : $a"};
    case Pointwise::kSquare:
      return {"$a * $a"};
    case Pointwise::kLogicalNot:
      return {"$a != 0 ? ($t)0 : ($t)1"};
    default:
      return {};
  }
}

template <kernels::Pointwise F>
void run_elementwise(const KernelArgs& a) {
  const kernels::SpanLoops& loops = span_loops<F>();
  const void* in[4];
  for (int i = 0; i < loops.arity; ++i) in[i] = a.in[i].data;
  kernels::apply_parallel(loops, a.in[0].dtype, in, a.out[0].data, a.out[0].size());
}

// out = F(inputs...) for inputs of equal shapes and dtypes. The caller adds the names of the inputs first, then doc,
// gradient and samples.
template <kernels::Pointwise F, class P = NoParams>
OpBuilder<P>& elementwise(OpBuilder<P>& op, DTypeSet dtypes = kNumeric) {
  for (int i = 0; i < kernels::loops(F).arity; ++i) op.inplace(i, 0);
  return op.output("out", "shape and dtype of the inputs")
      .infer([](const P&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu([](const P&, const KernelArgs& a) { run_elementwise<F>(a); }, dtypes)
      .pointwise(&pointwise_span<F>)
      .c_form(c_form_of(F))
      .neutral(neutral_numbers(F).right, neutral_numbers(F).left)
      .cost([](const P&, auto in, auto out) { return elementwise_cost(span_loops<F>(), in, out); });
}

// The same for parameters P with `void scalars(double* s) const`, which stores the scalars of the function (at most 2).
template <kernels::Pointwise F, class P>
void scalars_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  double scalars[2];
  static_cast<const P*>(params)->scalars(scalars);
  kernels::apply(span_loops<F>(), dtype, in, out, n, scalars);
}

template <kernels::Pointwise F, class P>
void run_with_scalars(const P& p, const KernelArgs& a) {
  double scalars[2];
  p.scalars(scalars);
  const kernels::SpanLoops& loops = span_loops<F>();
  const void* in[4];
  for (int i = 0; i < loops.arity; ++i) in[i] = a.in[i].data;
  kernels::apply_parallel(loops, a.in[0].dtype, in, a.out[0].data, a.out[0].size(), scalars);
}

template <kernels::Pointwise F, class P>
OpBuilder<P>& elementwise_with_scalars(OpBuilder<P>& op, DTypeSet dtypes = kNumeric) {
  return elementwise<F, P>(op, dtypes).cpu(run_with_scalars<F, P>, dtypes).pointwise(&scalars_span<F, P>);
}

// An operator with one input named data.
template <kernels::Pointwise F>
OpBuilder<NoParams> unary(OpRegistry& ops, std::string name, std::string doc, DTypeSet dtypes = kNumeric) {
  auto op = ops.declare(std::move(name));
  op.doc(std::move(doc)).input("data", "array of any shape");
  elementwise<F>(op, dtypes);
  return op;
}

// A gradient helper of two inputs: internal, visible in graphs of gradients only.
template <kernels::Pointwise F>
OpBuilder<NoParams> gradient_helper(OpRegistry& ops, std::string name, std::string doc, std::string second) {
  auto op = ops.declare(std::move(name));
  op.doc(std::move(doc)).input("out_grad", "output gradient").input(std::move(second), "saved value").internal();
  elementwise<F>(op, kNumeric);
  return op;
}

}  // namespace hybridnet::ops
