// stack: joins tensors of one shape along a new axis.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct StackParams {
  int32_t axis, num_args;
  static void describe(ParamSchema<StackParams>& schema) {
    schema.field("axis", &StackParams::axis).default_value(0).doc("Position of the new axis in the output.");
    schema.field("num_args", &StackParams::num_args).at_least(1).doc("Number of inputs.");
  }
};

void infer_stack(const StackParams& p, InferContext& c) {
  c.unify_dtypes();
  if (c.out_shape(0).rank_known()) {
    const Shape& out = c.out_shape(0);
    const int axis = normalize_axis(p.axis, out.ndim());
    Shape part = Shape::scalar();
    for (int i = 0; i < out.ndim(); ++i) {
      if (i != axis) part.push_back(out[i]);
    }
    c.set_in_shape(0, part);
  }
  // Known sizes propagate forwards to the last input, then backwards to the first.
  for (int i = 1; i < c.num_in(); ++i) c.set_in_shape(i, c.in_shape(i - 1));
  for (int i = c.num_in() - 1; i > 0; --i) c.set_in_shape(i - 1, c.in_shape(i));
  const Shape& part = c.in_shape(0);
  if (!part.rank_known()) return;
  const int axis = normalize_axis(p.axis, part.ndim() + 1);
  Shape out = Shape::scalar();
  for (int i = 0; i <= part.ndim(); ++i) out.push_back(i < axis ? part[i] : i == axis ? c.num_in() : part[i - 1]);
  c.set_out_shape(0, out);
}

void run_stack(const StackParams& p, const KernelArgs& a) {
  const Shape& out = *a.out[0].shape;
  if (out.size() == 0) return;
  const int axis = normalize_axis(p.axis, out.ndim());
  const int64_t bytes = dtype_size(a.out[0].dtype);
  const int64_t outer = out.size(0, axis), inner = out.size(axis + 1, out.ndim());
  char* to = a.out[0].as<char>();
  for (const TensorRef& in : a.in) {
    kernels::StridedCopy copy;
    copy.add_axis(outer, inner, inner * out[axis]);
    copy.add_axis(inner, 1, 1);
    copy.run(in.data, to, bytes);
    to += inner * bytes;
  }
}

Values stack_gradient(const StackParams& p, const GradientContext& g) {
  static const OpRef kSplit{"SliceChannel"};
  const int count = g.num_inputs();
  Values result(static_cast<size_t>(count));
  const Value out = g.output_grad(0);
  if (!out) return result;
  const int axis = normalize_axis(p.axis, g.output_spec(0).shape.ndim());
  bool all = true;
  for (int i = 0; i < count; ++i) all = all && g.wants(i);
  if (all) return call_all(kSplit, Values{out}, {{"num_outputs", count}, {"axis", axis}, {"squeeze_axis", true}});
  for (int i = 0; i < count; ++i) {
    if (g.wants(i)) result[static_cast<size_t>(i)] = reshape(slice_axis(out, axis, i, i + 1), g.input_spec(i).shape);
  }
  return result;
}

}  // namespace

void register_stack(OpRegistry& ops) {
  ops.declare<StackParams>("stack")
      .doc("Joins tensors of one shape along a new axis.")
      .variadic_input("data", "num_args", "one shape, one dtype")
      .output("output", "shape of the inputs with the number of inputs inserted at axis")
      .infer(infer_stack)
      .any_device()
      .cpu(run_stack)
      .gradient(stack_gradient, Saves::nothing())
      .amp(AmpType::kWidest)
      .keeps_zeros()
      .sample({{2, 3}, {2, 3}, {2, 3}}, {{"num_args", "3"}})
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}, {"axis", "1"}})
      .sample({{2, 3}, {2, 3}}, {{"num_args", "2"}, {"axis", "-1"}});
}

}  // namespace hybridnet::ops
