// reverse (flip): reverses the order of elements along axes.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct ReverseParams {
  Tuple axis;
  static void describe(ParamSchema<ReverseParams>& schema) {
    schema.field("axis", &ReverseParams::axis).doc("The axes to reverse.");
  }
};

uint32_t reversed_axes(const ReverseParams& p, int ndim) {
  uint32_t mask = 0;
  for (int64_t axis : p.axis) mask |= 1u << normalize_axis(axis, ndim);
  return mask;
}

void run_reverse(const ReverseParams& p, const KernelArgs& a) {
  const Shape& shape = *a.in[0].shape;
  if (shape.size() == 0) return;
  const uint32_t reversed = reversed_axes(p, shape.ndim());
  const kernels::Strides strides(shape);
  const int64_t bytes = dtype_size(a.in[0].dtype);
  kernels::StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < shape.ndim(); ++i) {
    const bool turn = reversed >> i & 1u;
    if (turn) offset += (shape[i] - 1) * strides[i];
    copy.add_axis(shape[i], turn ? -strides[i] : strides[i], strides[i]);
  }
  copy.run(a.in[0].as<char>() + offset * bytes, a.out[0].data, bytes);
}

Values reverse_gradient(const ReverseParams& p, const GradientContext& g) {
  static const OpRef kReverse{"reverse"};
  if (!g.output_grad(0)) return {};
  return {call(kReverse, {g.output_grad(0)}, ParamSchema<ReverseParams>::box(p))};
}

}  // namespace

void register_reverse(OpRegistry& ops) {
  ops.declare<ReverseParams>("reverse")
      .alias("flip")
      .doc("Reverses the order of elements along the given axes.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "shape and dtype of data")
      .infer([](const ReverseParams& p, InferContext& c) {
        c.unify_dtypes();
        c.unify_shapes();
        if (c.in_shape(0).rank_known()) reversed_axes(p, c.in_shape(0).ndim());  // checks them
      })
      .any_device()
      .cpu(run_reverse)
      .gradient(reverse_gradient, Saves::nothing())
      .sample({{2, 3}}, {{"axis", "0"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}})
      .sample({{7}}, {{"axis", "(0,)"}});
}

}  // namespace hybridnet::ops
