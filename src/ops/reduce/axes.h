// Axes of reductions: the parameters axis, keepdims and exclude, the resulting shapes, and the broadcast back.
#pragma once

#include <optional>

#include "hybridnet/declare.h"
#include "kernels/reduce/reduce.h"
#include "ops/emit.h"

namespace hybridnet::ops {

struct ReduceParams {
  std::optional<Tuple> axis;
  bool keepdims;
  bool exclude;
  static void describe(ParamSchema<ReduceParams>& schema);
};

// Bit i is set if axis i is reduced. No axes (None or ()) means all. Throws ParamError for axes that are out of range
// or duplicate.
uint32_t reduced_axes(const std::optional<Tuple>& axis, bool exclude, int ndim);

// Shape after a reduction. A reduction of all axes without keepdims gives (1,), or () under NumPy shapes. Unknown sizes
// stay unknown.
Shape reduced_shape(const Shape& in, uint32_t axes, bool keepdims);

// Number of elements that are reduced to one output.
int64_t reduced_count(const Shape& in, uint32_t axes);

void infer_reduce(const ReduceParams& p, InferContext& c);

// renumbered_axes: the set of axes with their new numbers. keeps_order_without: whether the other axes keep their
// order.
uint32_t renumbered_axes(uint32_t axes, std::span<const int> moved_to);
bool keeps_order_without(uint32_t axes, std::span<const int> moved_to);

// The shape with the size of every reduced axis set to 1.
Shape kept_shape(const Shape& in, uint32_t axes);

// A reduced value broadcast over the reduced axes, to the shape `full`.
Value spread(const Value& reduced, const Shape& full, uint32_t axes);

Tuple axes_tuple(uint32_t axes);

template <kernels::Reduction kReduction, kernels::Finish kFinish = kernels::Finish::kNone>
void run_reduce(const ReduceParams& p, const KernelArgs& a) {
  const Shape& shape = *a.in[0].shape;
  kernels::reduce(kReduction, kFinish, a.in[0].dtype, a.in[0].data, shape,
                  reduced_axes(p.axis, p.exclude, shape.ndim()), a.out[0].dtype, a.out[0].data);
}

// Declares name, docs, inference and kernel of a reduction; the caller adds the gradient.
template <kernels::Reduction kReduction, kernels::Finish kFinish = kernels::Finish::kNone>
OpBuilder<ReduceParams> reduction(OpRegistry& ops, std::string name, std::string doc) {
  auto op = ops.declare<ReduceParams>(std::move(name));
  op.doc(std::move(doc))
      .input("data", "array of any shape")
      .output("out", "dtype of data; the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .infer(infer_reduce)
      .any_device()
      .cpu(run_reduce<kReduction, kFinish>)
      .flops([](const ReduceParams&, auto in, auto) { return static_cast<double>(in[0].shape.size()); })
      .renumbered_params([](ReduceParams p, std::span<const int> moved_to) {
        const uint32_t axes = reduced_axes(p.axis, p.exclude, static_cast<int>(moved_to.size()));
        if (!p.keepdims && !keeps_order_without(axes, moved_to)) return std::optional<ReduceParams>();
        p.axis = axes_tuple(renumbered_axes(axes, moved_to));
        p.exclude = false;
        return std::optional(p);
      })
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}, {"keepdims", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "1"}, {"exclude", "1"}});
  return op;
}

}  // namespace hybridnet::ops
