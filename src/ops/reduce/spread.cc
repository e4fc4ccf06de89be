// The adjoint of a reduction: repeats a value over the reduced axes.
#include "hybridnet/declare.h"
#include "kernels/elementwise/broadcast.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {

struct SpreadParams {
  Tuple shape;
  Tuple axis;
  static void describe(ParamSchema<SpreadParams>& schema) {
    schema.field("shape", &SpreadParams::shape).doc("Shape of the output.");
    schema.field("axis", &SpreadParams::axis).doc("Axes over which the input is repeated.");
  }
};

uint32_t mask(const SpreadParams& p) {
  uint32_t axes = 0;
  for (int64_t a : p.axis) axes |= 1u << normalize_axis(a, p.shape.ndim());
  return axes;
}

void infer_spread(const SpreadParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape kept = kept_shape(p.shape, mask(p));
  const Shape& in = c.in_shape(0);
  if (in.known() && in.size() != kept.size()) {
    throw ShapeError({.input = "data", .expected = std::to_string(kept.size()) + " elements", .given = in.str()});
  }
  c.set_out_shape(0, p.shape);
}

void run_spread(const SpreadParams& p, const KernelArgs& a) {
  kernels::broadcast_copy(a.in[0].data, kept_shape(p.shape, mask(p)), dtype_size(a.in[0].dtype), a.out[0].data,
                          p.shape);
}

Values spread_gradient(const SpreadParams& p, const GradientContext& g) {
  const Value summed = p.axis.ndim() == 0 ? g.output_grad(0) : sum(g.output_grad(0), p.axis, true);
  return {reshape(summed, g.input_spec(0).shape)};
}

}  // namespace

void register_spread(OpRegistry& ops) {
  ops.declare<SpreadParams>("_spread")
      .doc("Repeats a reduced array over the reduced axes: the gradient of sum.")
      .internal()
      .input("data", "as many elements as shape has outside axis, in order")
      .output("out", "dtype of data")
      .infer(infer_spread)
      .any_device()
      .cpu(run_spread)
      .renumbered_params([](SpreadParams p, std::span<const int> moved_to) {
        const uint32_t axes = mask(p);
        if (!keeps_order_without(axes, moved_to)) return std::optional<SpreadParams>();
        const Shape before = p.shape;
        for (int i = 0; i < before.ndim(); ++i) p.shape[moved_to[static_cast<size_t>(i)]] = before[i];
        p.axis = axes_tuple(renumbered_axes(axes, moved_to));
        return std::optional(p);
      })
      .gradient(spread_gradient, Saves::nothing())
      .sample({{2, 4}}, {{"shape", "(2, 3, 4)"}, {"axis", "(1,)"}})
      .sample({Shape{1}}, {{"shape", "(2, 3)"}, {"axis", "(0, 1)"}});
}

}  // namespace hybridnet::ops
