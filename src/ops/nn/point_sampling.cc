#include "ops/nn/point_sampling.h"

#include "hybridnet/declare.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kSample{"_sample_points"}, kSpread{"_spread_points"};

struct PointSamplingParams {
  bool along_x = false, along_y = false;
  static void describe(ParamSchema<PointSamplingParams>& schema) {
    schema.field("along_x", &PointSamplingParams::along_x)
        .default_value(false)
        .doc("Whether the values are differentiated by x.");
    schema.field("along_y", &PointSamplingParams::along_y)
        .default_value(false)
        .doc("Whether the values are differentiated by y.");
  }
};

struct SpreadParams : PointSamplingParams {
  Tuple image_size;
  static void describe(ParamSchema<SpreadParams>& schema) {
    schema.field("along_x", static_cast<bool SpreadParams::*>(&SpreadParams::along_x))
        .default_value(false)
        .doc("Whether the values are differentiated by x.");
    schema.field("along_y", static_cast<bool SpreadParams::*>(&SpreadParams::along_y))
        .default_value(false)
        .doc("Whether the values are differentiated by y.");
    schema.field("image_size", &SpreadParams::image_size).doc("(height, width) of the result.");
  }
};

void infer_sample(const PointSamplingParams&, InferContext& c) {
  c.unify_dtypes();
  const Shape &image = c.in_shape(0), &grid = c.in_shape(1);
  c.set_out_shape(0, Shape{image[0], image[1], grid[2], grid[3]});
}

void infer_spread(const SpreadParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, Shape{c.in_shape(0)[0], c.in_shape(0)[1], p.image_size[0], p.image_size[1]});
}

kernels::PointSampling sampling(const PointSamplingParams& p, const Shape& image, const Shape& grid) {
  kernels::PointSampling s = point_sampling(image, grid);
  s.along_x = p.along_x;
  s.along_y = p.along_y;
  return s;
}

void run_sample(const PointSamplingParams& p, const KernelArgs& a) {
  const auto run = [&]<typename T>(T) {
    kernels::sample_points<T>(sampling(p, *a.in[0].shape, *a.in[1].shape), a.in[0].as<T>(), a.in[1].as<T>(),
                              a.out[0].as<T>());
  };
  a.in[0].dtype == DType::kFloat64 ? run(double{}) : run(float{});
}

void run_spread(const SpreadParams& p, const KernelArgs& a) {
  const auto run = [&]<typename T>(T) {
    kernels::spread_points<T>(sampling(p, *a.out[0].shape, *a.in[1].shape), a.in[0].as<T>(), a.in[1].as<T>(),
                              a.out[0].as<T>());
  };
  a.in[0].dtype == DType::kFloat64 ? run(double{}) : run(float{});
}

Value sample(const PointSamplingParams& p, const Value& image, const Value& grid) {
  return call(kSample, {image, grid}, ParamSchema<PointSamplingParams>::box(p));
}
Value spread(const PointSamplingParams& p, const Value& values, const Value& grid, const Shape& image) {
  SpreadParams q;
  static_cast<PointSamplingParams&>(q) = p;
  q.image_size = Tuple{image[2], image[3]};
  return call(kSpread, {values, grid}, ParamSchema<SpreadParams>::box(std::move(q)));
}

// The derivative of <weights, image read at grid> by the grid. Along an axis, the interpolation has no second
// derivative.
Value grid_gradient(const PointSamplingParams& p, const Value& weights, const Value& image, const Value& grid) {
  const auto slope = [&](PointSamplingParams q) { return sum(weights * sample(q, image, grid), Tuple{1}, true); };
  const TensorSpec spec = spec_of(grid);
  const Value none =
      p.along_x || p.along_y ? zeros(Shape{spec.shape[0], 1, spec.shape[2], spec.shape[3]}, spec.dtype) : Value{};
  const Value x = p.along_x ? none : slope({.along_x = true, .along_y = p.along_y});
  const Value y = p.along_y ? none : slope({.along_x = p.along_x, .along_y = true});
  return concat({x, y}, 1);
}

Values sample_gradient(const PointSamplingParams& p, const GradientContext& g) {
  Values grads(2);
  const Value dy = g.output_grad(0);
  if (!dy) return grads;
  if (g.wants(0)) grads[0] = spread(p, dy, g.input(1), g.input_spec(0).shape);
  if (g.wants(1)) grads[1] = grid_gradient(p, dy, g.input(0), g.input(1));
  return grads;
}

Values spread_gradient(const SpreadParams& p, const GradientContext& g) {
  Values grads(2);
  const Value d = g.output_grad(0);
  if (!d) return grads;
  if (g.wants(0)) grads[0] = sample(p, d, g.input(1));
  if (g.wants(1)) grads[1] = grid_gradient(p, g.input(0), d, g.input(1));
  return grads;
}

}  // namespace

kernels::PointSampling point_sampling(const Shape& image, const Shape& grid) {
  kernels::PointSampling s;
  s.batch = image[0];
  s.channels = image[1];
  s.height = image[2];
  s.width = image[3];
  s.out_height = grid[2];
  s.out_width = grid[3];
  return s;
}

Values point_sampling_gradients(const Value& dy, const Value& image, const Value& grid, bool want_image,
                                bool want_grid) {
  return {want_image ? spread({}, dy, grid, spec_of(image).shape) : Value{},
          want_grid ? grid_gradient({}, dy, image, grid) : Value{}};
}

int64_t point_sampling_cost_ns(const TensorSpec& out) { return out.shape.size() * 3 + 300; }

void register_point_sampling(OpRegistry& ops) {
  ops.declare<PointSamplingParams>("_sample_points")
      .internal()
      .doc("Image values at points, or their derivatives by the points' coordinates.")
      .input("image", "(batch, channels, height, width)")
      .input("grid", "(batch, 2, out height, out width): x and y")
      .output("output", "(batch, channels, out height, out width)")
      .infer(infer_sample)
      .any_device()
      .cpu(run_sample, kFloating)
      .halves_through_float()
      .gradient(sample_gradient, Saves::all_inputs())
      .cost([](const PointSamplingParams&, auto, auto out) { return point_sampling_cost_ns(out[0]); })
      .sample({{2, 2, 3, 4}, {2, 2, 2, 3}}, {}, -1.5, 1.5)
      .sample({{1, 2, 3, 4}, {1, 2, 2, 2}}, {{"along_x", "True"}}, -0.9, 0.9);
  ops.declare<SpreadParams>("_spread_points")
      .internal()
      .doc("The adjoint of _sample_points with respect to the image.")
      .input("values", "(batch, channels, out height, out width)")
      .input("grid", "(batch, 2, out height, out width): x and y")
      .output("image", "(batch, channels, image_size)")
      .infer(infer_spread)
      .any_device()
      .cpu(run_spread, kFloating)
      .halves_through_float()
      .gradient(spread_gradient, Saves::all_inputs())
      .cost([](const SpreadParams&, auto in, auto) { return point_sampling_cost_ns(in[0]); })
      .sample({{2, 2, 2, 3}, {2, 2, 2, 3}}, {{"image_size", "(3, 4)"}}, -1.5, 1.5)
      .sample({{1, 2, 2, 2}, {1, 2, 2, 2}}, {{"image_size", "(3, 4)"}, {"along_x", "True"}, {"along_y", "True"}}, -0.9,
              0.9);
}

}  // namespace hybridnet::ops
