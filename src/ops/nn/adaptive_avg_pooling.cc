// _contrib_AdaptiveAvgPooling2D: averages over windows, one per element of the output.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/resample.h"

namespace hybridnet::ops {
namespace {

struct AdaptivePoolingParams {
  Tuple output_size;
  int64_t size(int axis) const { return output_size.ndim() == 0 ? 1 : output_size[output_size.ndim() == 1 ? 0 : axis]; }
  static void describe(ParamSchema<AdaptivePoolingParams>& schema) {
    schema.field("output_size", &AdaptivePoolingParams::output_size)
        .default_value(Tuple::scalar())
        .doc("(height, width), or one number for both; empty: 1.");
    schema.check([](const AdaptivePoolingParams& p) {
      bool valid = p.output_size.ndim() <= 2;
      for (int64_t size : p.output_size) valid = valid && size > 0;
      if (valid) return;
      throw ParamError(
          {.input = "output_size", .expected = "at most 2 positive numbers", .given = p.output_size.str()});
    });
  }
};

void infer_adaptive_pooling(const AdaptivePoolingParams& p, InferContext& c) {
  c.unify_dtypes();
  require_planes(c, 0);
  c.set_out_shape(0, Shape{c.in_shape(0)[0], c.in_shape(0)[1], p.size(0), p.size(1)});
  c.set_in_shape(0, Shape{c.out_shape(0)[0], c.out_shape(0)[1], kUnknownDim, kUnknownDim});
}

ResampleParams resample_params(const Shape& in, const Shape& out) {
  return {.kind = ResampleKind::kAverage, .source = image_size(in), .target = image_size(out)};
}

Values adaptive_pooling_gradient(const AdaptivePoolingParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  return {resample(g.output_grad(0), resample_params(g.input_spec(0).shape, g.output_spec(0).shape).adjoint())};
}

}  // namespace

void register_adaptive_avg_pooling(OpRegistry& ops) {
  ops.declare<AdaptivePoolingParams>("_contrib_AdaptiveAvgPooling2D")
      .doc(
          "Averages of windows that cover the image, output_size of them; element k of an axis averages elements "
          "floor(k size / n) to ceil((k + 1) size / n) - 1.")
      .input("data", "(batch, channels, height, width)")
      .output("output", "(batch, channels, output_size)")
      .infer(infer_adaptive_pooling)
      .any_device()
      .link([](const AdaptivePoolingParams&, const LinkContext& c) {
        return link_resample(resample_params(c.in[0].shape, c.out[0].shape), c);
      })
      .halves_through_float()
      .gradient(adaptive_pooling_gradient, Saves::nothing())
      .cost([](const AdaptivePoolingParams&, auto in, auto out) { return resample_cost_ns(in[0], out[0]); })
      .sample({{2, 2, 5, 4}})
      .sample({{2, 2, 5, 4}}, {{"output_size", "(3,)"}})
      .sample({{2, 1, 5, 4}}, {{"output_size", "(2, 6)"}})
      .sample({{0, 2, 5, 4}}, {{"output_size", "(2, 2)"}});
}

}  // namespace hybridnet::ops
