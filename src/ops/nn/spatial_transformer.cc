// SpatialTransformer: images under affine transformations that a network predicts (Jaderberg et al., 2015).
#include "hybridnet/declare.h"
#include "kernels/image/affine_grid.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"
#include "ops/nn/point_sampling.h"

namespace hybridnet::ops {
namespace {

const OpRef kGridGenerator{"GridGenerator"};

enum class TransformType : int32_t { kAffine };
enum class SamplerType : int32_t { kBilinear };

struct SpatialTransformerParams {
  Tuple target_shape;
  TransformType transform_type;
  SamplerType sampler_type;
  std::optional<bool> cudnn_off;
  static void describe(ParamSchema<SpatialTransformerParams>& schema) {
    using P = SpatialTransformerParams;
    schema.field("target_shape", &P::target_shape).default_value(Tuple{0, 0}).doc("(height, width) of the output.");
    schema.field("transform_type", &P::transform_type)
        .choice("affine", TransformType::kAffine)
        .doc("Kind of transformation.");
    schema.field("sampler_type", &P::sampler_type)
        .choice("bilinear", SamplerType::kBilinear)
        .doc("Kind of interpolation.");
    schema.field("cudnn_off", &P::cudnn_off).none_by_default().hidden();
    schema.check([](const P& p) {
      if (p.target_shape.ndim() == 2 && p.target_shape[0] > 0 && p.target_shape[1] > 0) return;
      throw ParamError(
          {.input = "target_shape", .expected = "a positive height and width", .given = p.target_shape.str()});
    });
  }
};

void infer_spatial_transformer(const SpatialTransformerParams& p, InferContext& c) {
  c.unify_dtypes();
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != 4)
    throw ShapeError({.input = "data", .expected = "(batch, channels, height, width)", .given = c.in_shape(0).str()});
  c.set_in_shape(0, Shape::unknown(4));
  c.set_in_shape(1, Shape{c.in_shape(0)[0], 6});
  c.set_out_shape(0, Shape{c.in_shape(1)[0], c.in_shape(0)[1], p.target_shape[0], p.target_shape[1]});
  c.set_in_shape(0, Shape{c.out_shape(0)[0], c.out_shape(0)[1], kUnknownDim, kUnknownDim});
  c.set_in_shape(1, Shape{c.out_shape(0)[0], 6});
}

template <typename T>
class SpatialTransformerKernel final : public Kernel {
 public:
  explicit SpatialTransformerKernel(const Shape& out) : grid_{out[0], 2, out[2], out[3]} {}
  int64_t workspace_bytes() const override { return grid_.size() * static_cast<int64_t>(sizeof(T)); }
  void run(const KernelArgs& a) override {
    T* grid = static_cast<T*>(a.workspace);
    kernels::affine_grid<T>(grid_[0], grid_[2], grid_[3], a.in[1].as<T>(), grid);
    kernels::sample_points<T>(point_sampling(*a.in[0].shape, grid_), a.in[0].as<T>(), grid, a.out[0].as<T>());
  }

 private:
  Shape grid_;
};

Ref<Kernel> link_spatial_transformer(const SpatialTransformerParams&, const LinkContext& c) {
  return make_float_kernel<SpatialTransformerKernel>(c.in[0].dtype, c.out[0].shape);
}

// d loc = d grid * points', summed over the points: GridGenerator's gradient rule, expanded.
Values spatial_transformer_gradient(const SpatialTransformerParams& p, const GradientContext& g) {
  const Shape& out = g.output_spec(0).shape;
  if (!g.output_grad(0) || out.size() == 0) return Values(2);
  const Values made = call_all(kGridGenerator, Values{g.input(1)},
                               {{"transform_type", "affine"}, {"target_shape", AttrValue(p.target_shape)}});
  Values grads = point_sampling_gradients(g.output_grad(0), g.input(0), made[0], g.wants(0), g.wants(1));
  if (grads[1]) {
    const Value rows = reshape(grads[1], Shape{out[0] * 2, out[2] * out[3]});
    grads[1] = reshape(dot(rows, made[1], false, true), Shape{out[0], 6});
  }
  return grads;
}

}  // namespace

void register_spatial_transformer(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> kinds = {{"transform_type", "affine"},
                                                                  {"sampler_type", "bilinear"}};
  const auto sized = [&](const char* size) {
    auto attrs = kinds;
    attrs.emplace_back("target_shape", size);
    return attrs;
  };
  ops.declare<SpatialTransformerParams>("SpatialTransformer")
      .doc("Images under affine transformations: BilinearSampler at the grid that GridGenerator computes from loc.")
      .input("data", "(batch, channels, height, width)")
      .input("loc", "(batch, 6): rows of 2 x 3 matrices that act on (x, y, 1)")
      .output("output", "(batch, channels, target_shape)")
      .infer(infer_spatial_transformer)
      .any_device()
      .link(link_spatial_transformer)
      .halves_through_float()
      .gradient(spatial_transformer_gradient, Saves::all_inputs())
      .cost([](const SpatialTransformerParams&, auto, auto out) { return point_sampling_cost_ns(out[0]); })
      .sample({{2, 2, 4, 3}, {2, 6}}, sized("(3, 4)"), -0.9, 0.9)
      .sample({{1, 1, 3, 3}, {1, 6}}, sized("(1, 2)"), -0.9, 0.9)
      .sample({{0, 1, 3, 3}, {0, 6}}, sized("(2, 2)"));
}

}  // namespace hybridnet::ops
