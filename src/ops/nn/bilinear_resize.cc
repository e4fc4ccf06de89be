// _contrib_BilinearResize2D: resizes images by bilinear interpolation.
#include "hybridnet/declare.h"
#include "kernels/elementwise/integers.h"
#include "ops/emit.h"
#include "ops/nn/resample.h"

namespace hybridnet::ops {
namespace {

enum class ResizeMode : int32_t { kSize, kOddScale, kLike, kToEvenDown, kToEvenUp, kToOddDown, kToOddUp };

struct BilinearResizeParams {
  int32_t height, width;
  std::optional<float> scale_height, scale_width;
  ResizeMode mode;
  bool align_corners;
  int num_inputs() const { return mode == ResizeMode::kLike ? 2 : 1; }
  static void describe(ParamSchema<BilinearResizeParams>& schema);
};

void BilinearResizeParams::describe(ParamSchema<BilinearResizeParams>& schema) {
  using P = BilinearResizeParams;
  schema.field("height", &P::height)
      .default_value(1)
      .at_least(1)
      .doc("Height of the output; mode size without scale_height.");
  schema.field("width", &P::width)
      .default_value(1)
      .at_least(1)
      .doc("Width of the output; mode size without scale_width.");
  schema.field("scale_height", &P::scale_height)
      .none_by_default()
      .doc("Factor of the height; modes size and odd_scale.");
  schema.field("scale_width", &P::scale_width).none_by_default().doc("Factor of the width; modes size and odd_scale.");
  schema.field("mode", &P::mode)
      .default_value("size")
      .choice("size", ResizeMode::kSize)
      .choice("odd_scale", ResizeMode::kOddScale)
      .choice("like", ResizeMode::kLike)
      .choice("to_even_down", ResizeMode::kToEvenDown)
      .choice("to_even_up", ResizeMode::kToEvenUp)
      .choice("to_odd_down", ResizeMode::kToOddDown)
      .choice("to_odd_up", ResizeMode::kToOddUp)
      .doc(
          "Source of the new sizes. size: the parameters; like: the second input; odd_scale: the scaled size, (size - "
          "1) * scale + 1 for odd ones; to_even_down ... to_odd_up: the next even or odd size.");
  schema.field("align_corners", &P::align_corners)
      .default_value(true)
      .doc("Whether the centers of the corner pixels are aligned; otherwise the corners of the images are.");
  schema.check([](const P& p) {
    if (p.mode == ResizeMode::kOddScale && !(p.scale_height && p.scale_width)) {
      throw ParamError({.input = p.scale_height ? "scale_width" : "scale_height",
                        .expected = "a factor",
                        .given = "None",
                        .because = "mode is odd_scale"});
    }
  });
}

// The scaled size, limited to INT64_MAX / 2, so that no array has it and adding 1 cannot overflow.
int64_t scaled(int64_t size, float scale) {
  return std::min(kernels::to_integer(static_cast<float>(size) * scale), INT64_MAX / 2);
}

int64_t resized(ResizeMode mode, int64_t size, int64_t given, const std::optional<float>& scale) {
  if (mode == ResizeMode::kSize && !scale) return given;
  if (size == kUnknownDim) return kUnknownDim;
  const bool odd = size % 2 == 1;
  switch (mode) {
    case ResizeMode::kOddScale:
      return odd ? scaled(size - 1, *scale) + 1 : scaled(size, *scale);
    case ResizeMode::kToEvenDown:
      return size - odd;
    case ResizeMode::kToEvenUp:
      return size + odd;
    case ResizeMode::kToOddDown:
      return size - !odd;
    case ResizeMode::kToOddUp:
      return size + !odd;
    default:
      return scaled(size, *scale);
  }
}

void infer_bilinear_resize(const BilinearResizeParams& p, InferContext& c) {
  c.unify_dtypes();
  require_planes(c, 0);
  Shape out = c.in_shape(0);
  if (p.mode == ResizeMode::kLike) {
    c.set_in_shape(1, Shape::unknown(4));
    out[2] = c.in_shape(1)[2];
    out[3] = c.in_shape(1)[3];
  } else {
    out[2] = resized(p.mode, out[2], p.height, p.scale_height);
    out[3] = resized(p.mode, out[3], p.width, p.scale_width);
  }
  for (int axis : {2, 3}) {
    if (out[axis] != 0) continue;
    throw ShapeError({.input = "data",
                      .expected = "images that are at least 1 high and wide after resizing",
                      .given = c.in_shape(0).str()});
  }
  c.set_out_shape(0, out);
  c.set_in_shape(0, Shape{c.out_shape(0)[0], c.out_shape(0)[1], kUnknownDim, kUnknownDim});
}

ResampleParams resample_params(const BilinearResizeParams& p, const Shape& in, const Shape& out) {
  return {.kind = ResampleKind::kBilinear,
          .align_corners = p.align_corners,
          .source = image_size(in),
          .target = image_size(out)};
}

Values bilinear_resize_gradient(const BilinearResizeParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(p.num_inputs()));
  if (!g.output_grad(0)) return grads;
  grads[0] = resample(g.output_grad(0), resample_params(p, g.input_spec(0).shape, g.output_spec(0).shape).adjoint());
  return grads;
}

}  // namespace

void register_bilinear_resize(OpRegistry& ops) {
  const auto like = Sample{.inputs = {{1, 2, 3, 4}, {1, 1, 5, 2}}, .attrs = {{"mode", "like"}}};
  ops.declare<BilinearResizeParams>("_contrib_BilinearResize2D")
      .doc("Images resized to another height and width by bilinear interpolation.")
      .input("data", "(batch, channels, height, width)")
      .optional_input("like", "mode like: an image with the new height and width; no gradient")
      .num_inputs([](const BilinearResizeParams& p) { return p.num_inputs(); })
      .output("output", "(batch, channels, new height, new width)")
      .infer(infer_bilinear_resize)
      .any_device()
      .link([](const BilinearResizeParams& p, const LinkContext& c) {
        return link_resample(resample_params(p, c.in[0].shape, c.out[0].shape), c);
      })
      .halves_through_float()
      .gradient(bilinear_resize_gradient, Saves::nothing())
      .cost([](const BilinearResizeParams&, auto in, auto out) { return resample_cost_ns(in[0], out[0]); })
      .sample({{2, 2, 3, 4}}, {{"height", "5"}, {"width", "7"}})
      .sample({{2, 1, 6, 5}}, {{"height", "3"}, {"width", "4"}, {"align_corners", "False"}})
      .sample({{1, 2, 3, 4}}, {{"scale_height", "2.0"}, {"scale_width", "0.5"}, {"align_corners", "False"}})
      .sample({{1, 1, 3, 4}}, {{"scale_height", "2.0"}, {"scale_width", "2.0"}, {"mode", "odd_scale"}})
      .sample({{1, 1, 3, 4}}, {{"mode", "to_even_up"}})
      .sample({{1, 1, 3, 4}}, {{"mode", "to_odd_down"}})
      .sample({{1, 1, 3, 4}}, {{"height", "1"}, {"width", "1"}})
      .sample({{0, 2, 3, 4}}, {{"height", "2"}, {"width", "2"}})
      .sample(like);
}

}  // namespace hybridnet::ops
