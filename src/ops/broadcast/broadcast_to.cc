// Repeating an array along axes of size 1.
#include "kernels/broadcast.h"

#include "ops/broadcast/family.h"
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

}  // namespace

void register_broadcast_to(OpRegistry& ops) {
  ops.declare<BroadcastToParams>("broadcast_to")
      .alias("_npi_broadcast_to")
      .doc("Repeats the input along its axes of size 1 until it has the given shape.")
      .input("data", "array whose sizes are 1 or those of shape")
      .output("out", "dtype of data, shape as given")
      .infer(infer_broadcast_to)
      .cpu([](const BroadcastToParams&, const KernelArgs& a) { run_repeat(a); })
      .gradient([](const BroadcastToParams&, const GradientContext& g) { return repeat_gradient(g); }, Saves::nothing())
      .sample({{1, 3}}, {{"shape", "(4, 3)"}})
      .sample({{2, 1, 3}}, {{"shape", "(0, 4, 0)"}});
}

}  // namespace hybridnet::ops
