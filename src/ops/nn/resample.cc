#include "ops/nn/resample.h"

#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/float_kernel.h"

namespace hybridnet::ops {
namespace {

const OpRef kResample{"_resample2d"};

template <typename T>
class ResampleKernel final : public Kernel {
 public:
  explicit ResampleKernel(const ResampleParams& p) : rows_(p.map(0)), columns_(p.map(1)) {}
  void run(const KernelArgs& a) override {
    const Shape& in = *a.in[0].shape;
    kernels::resample(rows_, columns_, in[0] * in[1], static_cast<const T*>(a.in[0].as<T>()), a.out[0].as<T>(), false);
  }

 private:
  kernels::AxisMap rows_, columns_;
};

void infer_resample(const ResampleParams& p, InferContext& c) {
  c.unify_dtypes();
  const Tuple &from = p.transpose ? p.target : p.source, &to = p.transpose ? p.source : p.target;
  c.set_in_shape(0, Shape{kUnknownDim, kUnknownDim, from[0], from[1]});
  c.set_out_shape(0, Shape{c.in_shape(0)[0], c.in_shape(0)[1], to[0], to[1]});
  c.set_in_shape(0, Shape{c.out_shape(0)[0], c.out_shape(0)[1], from[0], from[1]});
}

Values resample_gradient(const ResampleParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  return {resample(g.output_grad(0), p.adjoint())};
}

}  // namespace

void ResampleParams::describe(ParamSchema<ResampleParams>& schema) {
  schema.field("kind", &ResampleParams::kind)
      .choice("nearest", ResampleKind::kNearest)
      .choice("bilinear", ResampleKind::kBilinear)
      .choice("average", ResampleKind::kAverage)
      .doc("Kind of interpolation.");
  schema.field("align_corners", &ResampleParams::align_corners)
      .default_value(false)
      .doc("For bilinear: whether the centers of the corner pixels are aligned.");
  schema.field("transpose", &ResampleParams::transpose)
      .default_value(false)
      .doc("Whether to apply the adjoint map, from target to source.");
  schema.field("source", &ResampleParams::source).doc("(height, width) before resampling.");
  schema.field("target", &ResampleParams::target).doc("(height, width) after resampling.");
}

kernels::AxisMap ResampleParams::map(int axis) const {
  const int64_t from = source[axis], to = target[axis];
  kernels::AxisMap map;
  switch (kind) {
    case ResampleKind::kNearest:
      map = kernels::AxisMap::nearest(from, to);
      break;
    case ResampleKind::kBilinear:
      map = kernels::AxisMap::bilinear(from, to, align_corners);
      break;
    case ResampleKind::kAverage:
      map = kernels::AxisMap::average(from, to);
      break;
  }
  return transpose ? map.transposed() : map;
}

void require_planes(InferContext& c, int input) {
  const Shape& shape = c.in_shape(input);
  if (shape.rank_known() && (shape.ndim() != 4 || shape[2] == 0 || shape[3] == 0)) {
    throw ShapeError({.input = c.input_name(input),
                      .expected = "(batch, channels, height, width) with a height and width of at least 1",
                      .given = shape.str()});
  }
  c.set_in_shape(input, Shape::unknown(4));
}

Ref<Kernel> link_resample(const ResampleParams& p, const LinkContext& c) {
  return make_float_kernel<ResampleKernel>(c.in[0].dtype, p);
}

Value resample(const Value& image, ResampleParams p) {
  return call(kResample, {image}, ParamSchema<ResampleParams>::box(std::move(p)));
}

int64_t resample_cost_ns(const TensorSpec& in, const TensorSpec& out) {
  return in.shape.size() / 4 + out.shape.size() + 300;
}

void register_resample(OpRegistry& ops) {
  ops.declare<ResampleParams>("_resample2d")
      .internal()
      .doc("Resamples the rows and columns of images, or applies the adjoint map.")
      .input("data", "(batch, channels, height, width)")
      .output("output", "(batch, channels, height, width)")
      .infer(infer_resample)
      .any_device()
      .link(link_resample)
      .halves_through_float()
      .gradient(resample_gradient, Saves::nothing())
      .cost([](const ResampleParams&, auto in, auto out) { return resample_cost_ns(in[0], out[0]); })
      .sample({{2, 1, 3, 2}}, {{"kind", "bilinear"}, {"source", "(3, 2)"}, {"target", "(4, 5)"}})
      .sample({{2, 1, 4, 5}}, {{"kind", "average"}, {"source", "(3, 2)"}, {"target", "(4, 5)"}, {"transpose", "True"}})
      .sample({{1, 2, 2, 2}}, {{"kind", "nearest"}, {"source", "(2, 2)"}, {"target", "(4, 6)"}});
}

}  // namespace hybridnet::ops
