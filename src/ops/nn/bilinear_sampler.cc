// BilinearSampler: reads images at the points of a grid.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/point_sampling.h"

namespace hybridnet::ops {
namespace {

struct BilinearSamplerParams {
  std::optional<bool> cudnn_off;
  static void describe(ParamSchema<BilinearSamplerParams>& schema) {
    schema.field("cudnn_off", &BilinearSamplerParams::cudnn_off).none_by_default().hidden();
  }
};

void require_four(InferContext& c, int i, const char* axes) {
  if (c.in_shape(i).rank_known() && c.in_shape(i).ndim() != 4)
    throw ShapeError({.input = c.input_name(i), .expected = axes, .given = c.in_shape(i).str()});
  c.set_in_shape(i, Shape::unknown(4));
}

void infer_bilinear_sampler(const BilinearSamplerParams&, InferContext& c) {
  c.unify_dtypes();
  require_four(c, 0, "(batch, channels, height, width)");
  require_four(c, 1, "(batch, 2, out height, out width)");
  c.set_in_shape(1, Shape{c.in_shape(0)[0], 2, kUnknownDim, kUnknownDim});
  c.set_out_shape(0, Shape{c.in_shape(1)[0], c.in_shape(0)[1], c.in_shape(1)[2], c.in_shape(1)[3]});
  const Shape& out = c.out_shape(0);
  c.set_in_shape(0, Shape{out[0], out[1], kUnknownDim, kUnknownDim});
  c.set_in_shape(1, Shape{out[0], 2, out[2], out[3]});
}

void run_bilinear_sampler(const BilinearSamplerParams&, const KernelArgs& a) {
  const auto run = [&]<typename T>(T) {
    kernels::sample_points<T>(point_sampling(*a.in[0].shape, *a.in[1].shape), a.in[0].as<T>(), a.in[1].as<T>(),
                              a.out[0].as<T>());
  };
  a.in[0].dtype == DType::kFloat64 ? run(double{}) : run(float{});
}

Values bilinear_sampler_gradient(const BilinearSamplerParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return Values(2);
  return point_sampling_gradients(g.output_grad(0), g.input(0), g.input(1), g.wants(0), g.wants(1));
}

}  // namespace

void register_bilinear_sampler(OpRegistry& ops) {
  ops.declare<BilinearSamplerParams>("BilinearSampler")
      .doc(
          "Images read at points by bilinear interpolation. Along each axis -1 is the center of the first pixel and 1 "
          "the center of the last; values outside the image are zero.")
      .input("data", "(batch, channels, height, width)")
      .input("grid", "points (batch, 2, out height, out width): x in the first plane, y in the second")
      .output("output", "(batch, channels, out height, out width)")
      .infer(infer_bilinear_sampler)
      .any_device()
      .cpu(run_bilinear_sampler, kFloating)
      .halves_through_float()
      .gradient(bilinear_sampler_gradient, Saves::all_inputs())
      .cost([](const BilinearSamplerParams&, auto, auto out) { return point_sampling_cost_ns(out[0]); })
      .sample({{2, 2, 3, 4}, {2, 2, 3, 2}}, {}, -0.95, 0.95)
      .sample({{1, 3, 4, 3}, {1, 2, 4, 5}}, {}, -1.6, 1.6)
      .sample({{0, 3, 4, 3}, {0, 2, 4, 5}});
}

}  // namespace hybridnet::ops
