// Operators of an array and a number given as a parameter: _plus_scalar and its family.
#pragma once

#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {

struct ScalarParams {
  double scalar;
  bool is_int;
  static void describe(ParamSchema<ScalarParams>& schema);
};

// Integer arrays keep their dtype (the number is rounded toward zero, the result wraps around) unless is_int is false,
// which makes the result float64. Bool arrays produce int64 or float64.
void infer_scalar(const ScalarParams& p, InferContext& c);

// True if the number, rounded toward zero, is outside an integer dtype narrower than int64.
bool is_beyond(DType dtype, double number);

// Computes a function of a narrow integer array and a number outside its dtype in int64; the result wraps around.
void apply_in_int64(const kernels::SpanLoops& loops, double scalar, kernels::Repeat side, DType dtype, const void* data,
                    void* out, int64_t n);

// True if the function of wrapped operands equals the wrapped result.
constexpr bool wraps_alike(kernels::Pointwise f) {
  return f == kernels::Pointwise::kAdd || f == kernels::Pointwise::kSub || f == kernels::Pointwise::kMul;
}

template <kernels::Pointwise F, kernels::Repeat kScalarSide>
void apply_scalar(double scalar, DType dtype, const void* data, void* out, int64_t n, bool parallel) {
  if (!wraps_alike(F) && is_beyond(dtype, scalar))
    return apply_in_int64(span_loops<F>(), scalar, kScalarSide, dtype, data, out, n);
  kernels::apply_number(span_loops<F>(), dtype, scalar, kScalarSide, data, out, n, parallel);
}

template <kernels::Pointwise F, kernels::Repeat kScalarSide>
void scalar_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  apply_scalar<F, kScalarSide>(static_cast<const ScalarParams*>(params)->scalar, dtype, in[0], out, n, false);
}

template <kernels::Pointwise F, kernels::Repeat kScalarSide>
void run_scalar(const ScalarParams& p, const KernelArgs& a) {
  const TensorRef& in = a.in[0];
  const TensorRef& out = a.out[0];
  const void* data = in.data;
  if (in.dtype != out.dtype) {
    kernels::convert_parallel(in.dtype, in.data, out.dtype, out.data, out.size());
    data = out.data;
  }
  apply_scalar<F, kScalarSide>(p.scalar, out.dtype, data, out.data, out.size(), true);
}

// F(data, scalar) if the scalar is on the right, F(scalar, data) if it is on the left.
template <kernels::Pointwise F, kernels::Repeat kScalarSide>
OpBuilder<ScalarParams> scalar_op(OpRegistry& ops, std::string name, std::string doc, DTypeSet dtypes = kAllDTypes) {
  CForm form = c_form_of(F);
  form.number_first = kScalarSide == kernels::Repeat::kFirst;
  auto op = ops.declare<ScalarParams>(std::move(name));
  op.doc(std::move(doc))
      .input("data", "array of any shape")
      .output("out", "shape of data; dtype of data, unless data is bool or is_int is false")
      .infer(infer_scalar)
      .any_device()
      .cpu(run_scalar<F, kScalarSide>, dtypes)
      .pointwise(&scalar_span<F, kScalarSide>)
      .c_form(form)
      .inplace(0, 0)
      .neutral(kScalarSide == kernels::Repeat::kSecond ? neutral_numbers(F).right : neutral_numbers(F).left)
      .cost([](const ScalarParams&, auto in, auto out) { return elementwise_cost(span_loops<F>(), in, out); });
  return op;
}

inline constexpr kernels::Repeat kScalarLeft = kernels::Repeat::kFirst;
inline constexpr kernels::Repeat kScalarRight = kernels::Repeat::kSecond;

}  // namespace hybridnet::ops
