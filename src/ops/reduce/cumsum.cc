// Cumulative sums.
#include "kernels/reduce/cumsum.h"

#include "hybridnet/declare.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {

const OpRef kForward{"_np_cumsum"}, kBackward{"_backward_np_cumsum"};

struct CumsumParams {
  std::optional<int32_t> axis;
  std::optional<DType> dtype;
  static void describe(ParamSchema<CumsumParams>& schema) {
    schema.field("axis", &CumsumParams::axis)
        .none_by_default()
        .doc("Axis to sum along; None: all elements in row-major order.");
    schema.field("dtype", &CumsumParams::dtype)
        .none_by_default()
        .doc("Dtype of the output; None: dtype of a, int64 for bool.");
  }
};

void infer_dtype(const CumsumParams& p, InferContext& c) {
  if (p.dtype) return c.set_out_dtype(0, *p.dtype);
  if (c.in_dtype(0) == DType::kBool) return c.set_out_dtype(0, DType::kInt64);
  c.unify_dtypes();
}

void infer_cumsum(const CumsumParams& p, InferContext& c) {
  infer_dtype(p, c);
  const Shape& in = c.in_shape(0);
  if (p.axis) {
    c.unify_shapes();
    if (c.in_shape(0).rank_known()) normalize_axis(*p.axis, c.in_shape(0).ndim());
  } else if (in.known()) {
    c.set_out_shape(0, Shape{in.size()});
  }
}

void run_cumsum(const CumsumParams& p, const KernelArgs& a, bool from_end) {
  const Shape& shape = *a.in[0].shape;
  int64_t outer = 1, length = shape.size(), inner = 1;
  if (p.axis) {
    const int axis = normalize_axis(*p.axis, shape.ndim());
    outer = shape.size(0, axis);
    length = shape[axis];
    inner = shape.size(axis + 1, shape.ndim());
  }
  kernels::cumsum(a.in[0].dtype, a.in[0].data, outer, length, inner, from_end, a.out[0].dtype, a.out[0].data);
}

// The gradient of a cumulative sum from one end is a cumulative sum from the other end.
auto gradient_by(const OpRef& other) {
  return [&other](const CumsumParams& p, const GradientContext& g) -> Values {
    const TensorSpec& in = g.input_spec(0);
    if (!is_floating(in.dtype)) return Values(1);
    CumsumParams back = p;
    back.dtype = in.dtype;
    const Value dx = call(other, {g.output_grad(0)}, ParamSchema<CumsumParams>::box(back));
    return {p.axis ? dx : reshape(dx, in.shape)};
  };
}

OpBuilder<CumsumParams> cumsum_op(OpRegistry& ops, const char* name, const char* doc, bool from_end) {
  auto op = ops.declare<CumsumParams>(name);
  op.doc(doc)
      .input("a", "array of any shape")
      .output("out", "shape of a, or (a.size,) if axis is None")
      .infer(infer_cumsum)
      .any_device()
      .cpu([from_end](const CumsumParams& p, const KernelArgs& a) { run_cumsum(p, a, from_end); })
      .cost([](const CumsumParams&, auto in, auto) { return in[0].shape.size() * 3 / 2; })
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "-1"}})
      .sample({Shape{0, 4}}, {{"axis", "0"}});
  return op;
}

}  // namespace

void register_cumsum(OpRegistry& ops) {
  cumsum_op(ops, "_np_cumsum",
            "Sum of all elements up to each one along an axis. Floats are summed in float64, integers in int64.", false)
      .alias("cumsum")
      .gradient(gradient_by(kBackward), Saves::nothing());
  cumsum_op(ops, "_backward_np_cumsum", "Sum of all elements from each one to the end of an axis.", true)
      .internal()
      .gradient(gradient_by(kForward), Saves::nothing());
}

}  // namespace hybridnet::ops
