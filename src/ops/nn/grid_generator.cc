// GridGenerator: sampling points for BilinearSampler, from affine transformations or from displacements.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/image/affine_grid.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

enum class TransformType : int32_t { kAffine, kWarp };

struct GridGeneratorParams {
  TransformType transform_type;
  Tuple target_shape;
  bool affine() const { return transform_type == TransformType::kAffine; }
  static void describe(ParamSchema<GridGeneratorParams>& schema) {
    schema.field("transform_type", &GridGeneratorParams::transform_type)
        .choice("affine", TransformType::kAffine)
        .choice("warp", TransformType::kWarp)
        .doc("affine: data holds 2 x 3 matrices; warp: data holds displacements in pixels.");
    schema.field("target_shape", &GridGeneratorParams::target_shape)
        .default_value(Tuple{0, 0})
        .doc("affine: (height, width) of the grid.");
    schema.check([](const GridGeneratorParams& p) {
      if (!p.affine() || (p.target_shape.ndim() == 2 && p.target_shape[0] > 0 && p.target_shape[1] > 0)) return;
      throw ParamError({.input = "target_shape",
                        .expected = "a positive height and width",
                        .given = p.target_shape.str(),
                        .because = "transform_type is affine"});
    });
  }
};

void infer_grid_generator(const GridGeneratorParams& p, InferContext& c) {
  c.unify_dtypes();
  const int ndim = p.affine() ? 2 : 4;
  if (c.in_shape(0).rank_known() && c.in_shape(0).ndim() != ndim) {
    throw ShapeError({.input = "data",
                      .expected = p.affine() ? "(batch, 6)" : "(batch, 2, height, width)",
                      .given = c.in_shape(0).str()});
  }
  if (!p.affine()) {
    c.set_in_shape(0, Shape{kUnknownDim, 2, kUnknownDim, kUnknownDim});
    c.set_out_shape(0, c.in_shape(0));
    c.set_in_shape(0, c.out_shape(0));
    c.set_out_shape(1, Shape{2, c.in_shape(0)[2], c.in_shape(0)[3]});
    return;
  }
  c.set_in_shape(0, Shape{kUnknownDim, 6});
  c.set_out_shape(0, Shape{c.in_shape(0)[0], 2, p.target_shape[0], p.target_shape[1]});
  c.set_in_shape(0, Shape{c.out_shape(0)[0], 6});
  c.set_out_shape(1, Shape{3, checked_times(p.target_shape[0], p.target_shape[1], "target_shape")});
}

// The distance in pixels from -1 to the middle of an axis.
double half_span(int64_t size) { return static_cast<double>(size > 1 ? size - 1 : 1) / 2; }

template <typename T>
void warp(const Shape& shape, const T* flow, T* out) {
  const int64_t height = shape[2], width = shape[3], plane = height * width;
  if (device::current()) return kernels::on_device::make_grid("warp_grid", shape[0], height, width, flow, out);
  parallel_for(shape[0] * 2 * height, 1.2 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const bool is_y = row / height % 2 == 1;
      const T divisor = static_cast<T>(half_span(is_y ? height : width)), y = static_cast<T>(row % height);
      for (int64_t x = 0; x < width; ++x) {
        const int64_t at = row / height * plane + row % height * width + x;
        out[at] = (flow[at] + (is_y ? y : static_cast<T>(x))) / divisor - 1;
      }
    }
  });
}

template <typename T>
void fill_pixels(int64_t height, int64_t width, T* out) {
  if (device::current()) return kernels::on_device::make_grid<T>("fill_pixels", 1, height, width, nullptr, out);
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      out[y * width + x] = static_cast<T>(x);
      out[(height + y) * width + x] = static_cast<T>(y);
    }
}

template <typename T>
void run(const GridGeneratorParams& p, const KernelArgs& a) {
  const Shape& out = *a.out[0].shape;
  if (p.affine()) {
    kernels::affine_grid<T>(out[0], out[2], out[3], a.in[0].as<T>(), a.out[0].as<T>());
    if (a.out[1].data) kernels::fill_grid(out[2], out[3], a.out[1].as<T>());
  } else {
    warp<T>(out, a.in[0].as<T>(), a.out[0].as<T>());
    if (a.out[1].data) fill_pixels(out[2], out[3], a.out[1].as<T>());
  }
}

void run_grid_generator(const GridGeneratorParams& p, const KernelArgs& a) {
  a.in[0].dtype == DType::kFloat64 ? run<double>(p, a) : run<float>(p, a);
}

Values grid_generator_gradient(const GridGeneratorParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  const Shape& out = g.output_spec(0).shape;
  if (!d || out.size() == 0) return {};
  if (p.affine()) {
    const Value rows = reshape(d, Shape{out[0] * 2, out[2] * out[3]});
    return {reshape(dot(rows, g.output(1), false, true), Shape{out[0], 6})};
  }
  const DType dtype = g.output_spec(0).dtype;
  const Value scale = concat(
      {full(Shape{1, 1, 1, 1}, dtype, 1 / half_span(out[3])), full(Shape{1, 1, 1, 1}, dtype, 1 / half_span(out[2]))},
      1);
  return {d * scale};
}

}  // namespace

void register_grid_generator(OpRegistry& ops) {
  ops.declare<GridGeneratorParams>("GridGenerator")
      .doc(
          "Sampling points for BilinearSampler. affine: matrix * (x, y, 1) for every point of a regular grid from -1 "
          "to 1; warp: every pixel, displaced.")
      .input("data", "affine: (batch, 6), rows of 2 x 3 matrices; warp: (batch, 2, height, width), x and y in pixels")
      .names_its_input()
      .output("output", "(batch, 2, height, width)")
      .output("grid_dst", "the grid before the transformation: affine (3, height * width), warp (2, height, width)")
      .visible_outputs(1)
      .infer(infer_grid_generator)
      .any_device()
      .cpu(run_grid_generator, kFloating)
      .halves_through_float()
      .gradient(grid_generator_gradient, Saves::of({}, {1}))
      .skips_unwanted_outputs()
      .sample({{2, 6}}, {{"transform_type", "affine"}, {"target_shape", "(3, 4)"}})
      .sample({{2, 6}}, {{"transform_type", "affine"}, {"target_shape", "(1, 2)"}})
      .sample({{2, 2, 3, 4}}, {{"transform_type", "warp"}})
      .sample({{0, 6}}, {{"transform_type", "affine"}, {"target_shape", "(2, 2)"}});
}

}  // namespace hybridnet::ops
