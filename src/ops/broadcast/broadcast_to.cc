// Operators that repeat an array along axes of size 1.
#include <optional>

#include "hybridnet/declare.h"
#include "kernels/elementwise/broadcast.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

void run_repeat(const KernelArgs& a) {
  kernels::broadcast_copy(a.in[0].data, *a.in[0].shape, dtype_size(a.in[0].dtype), a.out[0].data, *a.out[0].shape);
}

Values repeat_gradient(const GradientContext& g) { return {sum_to(g.output_grad(0), g.input_spec(0).shape)}; }

void check_repeats(const Shape& in, const Shape& out, const char* param) {
  for (int i = 0; i < in.ndim(); ++i) {
    const int64_t from = in[i], to = out[i + out.ndim() - in.ndim()];
    if (from == to || from == 1 || from == kUnknownDim || to == kUnknownDim) continue;
    throw ShapeError({.input = "data",
                      .expected = "sizes equal to " + std::string(param) + " " + out.str() + " or 1",
                      .given = in.str()});
  }
}

struct BroadcastToParams {
  Tuple shape;
  static void describe(ParamSchema<BroadcastToParams>& schema) {
    schema.field("shape", &BroadcastToParams::shape)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Shape of the output; 0 (or -1 under NumPy shapes) copies the input's size.");
  }
};

void infer_broadcast_to(const BroadcastToParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  Shape out = p.shape;
  const int64_t copies = is_np_shape() ? -1 : 0;
  const bool aligned = in.rank_known() && in.ndim() <= out.ndim();
  if (in.rank_known() && (!aligned || (!is_np_shape() && in.ndim() != out.ndim()))) {
    throw ShapeError({.input = "data",
                      .expected = "rank " + std::to_string(out.ndim()) + " as in shape=" + out.str(),
                      .given = in.str(),
                      .fix = "reshape the input first, adding axes of size 1"});
  }
  for (int i = 0; i < out.ndim(); ++i) {
    if (out[i] != copies && out[i] != -1) continue;
    const int own = aligned ? i - (out.ndim() - in.ndim()) : -1;
    out[i] = own >= 0 ? in[own] : kUnknownDim;
  }
  if (aligned) check_repeats(in, out, "shape");
  c.set_out_shape(0, out);
}

// ---- broadcast_axis
struct BroadcastAxisParams {
  Tuple axis, size;
  static void describe(ParamSchema<BroadcastAxisParams>& schema) {
    schema.field("axis", &BroadcastAxisParams::axis)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Axes of size 1 to repeat.");
    schema.field("size", &BroadcastAxisParams::size)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Number of repetitions along each axis.");
    schema.check([](const BroadcastAxisParams& p) {
      if (p.axis.ndim() == p.size.ndim()) return;
      throw ParamError(
          {.input = "size", .expected = "as many numbers as axis " + p.axis.str() + " has", .given = p.size.str()});
    });
  }
};

void infer_broadcast_axis(const BroadcastAxisParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  Shape out = in;
  for (int i = 0; i < p.axis.ndim(); ++i) {
    const int axis = normalize_axis(p.axis[i], in.ndim());
    if (in[axis] != 1 && in[axis] != kUnknownDim) {
      throw ShapeError({.input = "data",
                        .expected = "size 1 along axis " + std::to_string(axis),
                        .given = in.str(),
                        .fix = "use tile or repeat for axes of other sizes"});
    }
    out[axis] = p.size[i];
  }
  c.set_out_shape(0, out);
}

// ---- broadcast_like
struct BroadcastLikeParams {
  std::optional<Tuple> lhs_axes, rhs_axes;
  static void describe(ParamSchema<BroadcastLikeParams>& schema) {
    schema.field("lhs_axes", &BroadcastLikeParams::lhs_axes)
        .none_by_default()
        .doc("Axes of lhs to repeat; None: all axes.");
    schema.field("rhs_axes", &BroadcastLikeParams::rhs_axes)
        .none_by_default()
        .doc("Axes of rhs that define the sizes; None: all axes.");
    schema.check([](const BroadcastLikeParams& p) {
      if (p.lhs_axes.has_value() == p.rhs_axes.has_value() &&
          (!p.lhs_axes || (p.lhs_axes->ndim() == p.rhs_axes->ndim() && p.lhs_axes->ndim() > 0)))
        return;
      throw ParamError({.input = "rhs_axes",
                        .expected = "as many axes as lhs_axes has, at least one, or None for both",
                        .given = p.rhs_axes ? p.rhs_axes->str() : "None"});
    });
  }
};

Shape like_shape(const BroadcastLikeParams& p, const Shape& lhs, const Shape& rhs) {
  if (!p.lhs_axes) {
    if (lhs.ndim() == rhs.ndim() || (is_np_shape() && lhs.ndim() < rhs.ndim())) return rhs;
    throw ShapeError({.input = "lhs",
                      .expected = "rank " + std::to_string(rhs.ndim()) + " as rhs " + rhs.str() + " has",
                      .given = lhs.str(),
                      .fix = "give lhs_axes and rhs_axes, or reshape lhs first"});
  }
  Shape out = lhs;
  for (int i = 0; i < p.lhs_axes->ndim(); ++i) {
    out[normalize_axis((*p.lhs_axes)[i], lhs.ndim(), "lhs_axes")] =
        rhs[normalize_axis((*p.rhs_axes)[i], rhs.ndim(), "rhs_axes")];
  }
  return out;
}

void infer_broadcast_like(const BroadcastLikeParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape &lhs = c.in_shape(0), &rhs = c.in_shape(1);
  if (!lhs.rank_known() || !rhs.rank_known()) return;
  const Shape out = like_shape(p, lhs, rhs);
  check_repeats(lhs, out, "those of rhs");
  c.set_out_shape(0, out);
}

}  // namespace

void register_broadcast_axes(OpRegistry& ops) {
  ops.declare<BroadcastAxisParams>("broadcast_axis")
      .alias("broadcast_axes")
      .doc("Repeats the input along axes of size 1.")
      .input("data", "array whose size along every axis of axis is 1")
      .output("out", "dtype of data; its shape with the given sizes")
      .infer(infer_broadcast_axis)
      .any_device()
      .cpu([](const BroadcastAxisParams&, const KernelArgs& a) { run_repeat(a); })
      .gradient([](const BroadcastAxisParams&, const GradientContext& g) { return repeat_gradient(g); },
                Saves::nothing())
      .sample({{1, 3, 1}}, {{"axis", "(0, 2)"}, {"size", "(2, 4)"}})
      .sample({{3, 1}}, {{"axis", "-1"}, {"size", "2"}});
  ops.declare<BroadcastLikeParams>("broadcast_like")
      .doc("Repeats lhs along its axes of size 1 to the shape of rhs, or to the sizes of some axes of rhs.")
      .input("lhs", "array whose sizes are 1 or equal to those of rhs")
      .input("rhs", "array that defines the shape; its values are not read")
      .output("out", "dtype of lhs")
      .infer(infer_broadcast_like)
      .any_device()
      .cpu([](const BroadcastLikeParams&, const KernelArgs& a) { run_repeat(a); })
      .gradient(
          [](const BroadcastLikeParams&, const GradientContext& g) -> Values {
            return {repeat_gradient(g)[0], {}};
          },
          Saves::nothing())
      .sample({{1, 3}, {4, 3}})
      .sample({{2, 1, 3}, {5, 4}}, {{"lhs_axes", "(1,)"}, {"rhs_axes", "(-1,)"}});
}

void register_broadcast_to(OpRegistry& ops) {
  ops.declare<BroadcastToParams>("broadcast_to")
      .doc("Repeats the input along its axes of size 1 until it has the given shape.")
      .input("data", "array whose sizes are 1 or those of shape")
      .output("out", "dtype of data, shape as given")
      .infer(infer_broadcast_to)
      .any_device()
      .cpu([](const BroadcastToParams&, const KernelArgs& a) { run_repeat(a); })
      .gradient([](const BroadcastToParams&, const GradientContext& g) { return repeat_gradient(g); }, Saves::nothing())
      .keeps_zeros()
      .sample({{1, 3}}, {{"shape", "(4, 3)"}})
      .sample({{2, 1, 3}}, {{"shape", "(0, 4, 0)"}});
}

}  // namespace hybridnet::ops
