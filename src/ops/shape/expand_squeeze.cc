// expand_dims and squeeze: insert and remove axes of size 1.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct ExpandDimsParams {
  int32_t axis;
  static void describe(ParamSchema<ExpandDimsParams>& schema) {
    schema.field("axis", &ExpandDimsParams::axis).doc("Position of the new axis in the output, in [-ndim-1, ndim].");
  }
};

void infer_expand_dims(const ExpandDimsParams& p, InferContext& c) {
  c.unify_dtypes();
  if (c.in_shape(0).rank_known()) {
    const Shape& in = c.in_shape(0);
    const int axis = normalize_axis(p.axis, in.ndim() + 1);
    Shape out = Shape::scalar();
    for (int i = 0; i <= in.ndim(); ++i) out.push_back(i < axis ? in[i] : i == axis ? 1 : in[i - 1]);
    c.set_out_shape(0, out);
  }
  if (c.out_shape(0).ndim() >= 1) {
    const Shape& out = c.out_shape(0);
    const int axis = normalize_axis(p.axis, out.ndim());
    Shape in = Shape::scalar();
    for (int i = 0; i < out.ndim(); ++i) {
      if (i != axis) in.push_back(out[i]);
    }
    c.set_in_shape(0, in);
  }
}

struct SqueezeParams {
  std::optional<Tuple> axis;
  static void describe(ParamSchema<SqueezeParams>& schema) {
    schema.field("axis", &SqueezeParams::axis).none_by_default().doc("Axes of size 1 to remove; None: all of them.");
  }
};

void infer_squeeze(const SqueezeParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  bool drop[kMaxDims] = {};
  if (p.axis) {
    for (int64_t given : *p.axis) {
      const int axis = normalize_axis(given, in.ndim());
      if (drop[axis]) throw ParamError({.input = "axis", .expected = "every axis once", .given = p.axis->str()});
      if (in[axis] >= 0 && in[axis] != 1) {
        throw ShapeError({.input = "data",
                          .expected = "size 1 in axis " + std::to_string(axis),
                          .given = in.str(),
                          .because = "axis=" + p.axis->str()});
      }
      drop[axis] = true;
    }
  } else {
    if (!in.known()) return;
    for (int i = 0; i < in.ndim(); ++i) drop[i] = in[i] == 1;
  }
  Shape out = Shape::scalar();
  for (int i = 0; i < in.ndim(); ++i) {
    if (!drop[i]) out.push_back(in[i]);
  }
  // Without NumPy shape semantics a single value has shape (1,).
  if (out.ndim() == 0 && in.ndim() > 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
}

}  // namespace

void register_expand_squeeze(OpRegistry& ops) {
  ops.declare<ExpandDimsParams>("expand_dims")
      .alias("_npi_expand_dims")
      .doc("Inserts an axis of size 1.")
      .input("data", "any shape, any dtype")
      .output("output", "one dimension more than data")
      .infer(infer_expand_dims)
      .any_device()
      .cpu([](const ExpandDimsParams&, const KernelArgs& a) { copy_first_input(a); })
      .view()
      .inplace(0, 0)
      .gradient([](const ExpandDimsParams&,
                   const GradientContext& g) { return Values{reshape(g.output_grad(0), g.input_spec(0).shape)}; },
                Saves::nothing())
      .sample({{2, 3}}, {{"axis", "1"}})
      .sample({{2, 3}}, {{"axis", "-1"}});
  ops.declare<SqueezeParams>("squeeze")
      .doc("Removes axes of size 1.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "shape of data without the removed axes")
      .infer(infer_squeeze)
      .any_device()
      .cpu([](const SqueezeParams&, const KernelArgs& a) { copy_first_input(a); })
      .view()
      .inplace(0, 0)
      .gradient([](const SqueezeParams&,
                   const GradientContext& g) { return Values{reshape(g.output_grad(0), g.input_spec(0).shape)}; },
                Saves::nothing())
      .sample({{2, 1, 3, 1}}, {})
      .sample({{2, 1, 3, 1}}, {{"axis", "(1,)"}})
      .sample({{2, 1, 3, 1}}, {{"axis", "-1"}});
}

}  // namespace hybridnet::ops
