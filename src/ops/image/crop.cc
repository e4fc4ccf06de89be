// _image_crop: a rectangle of an image.
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/image/image_size.h"

namespace hybridnet::ops {
namespace {

struct CropParams {
  int32_t x, y, width, height;
  static void describe(ParamSchema<CropParams>& schema) {
    schema.field("x", &CropParams::x).at_least(0).doc("Left border of the rectangle.");
    schema.field("y", &CropParams::y).at_least(0).doc("Upper border of the rectangle.");
    schema.field("width", &CropParams::width).at_least(1).doc("Width of the rectangle.");
    schema.field("height", &CropParams::height).at_least(1).doc("Height of the rectangle.");
  }
};

struct UncropParams {
  int32_t x, y;
  Tuple shape;
  static void describe(ParamSchema<UncropParams>& schema) {
    schema.field("x", &UncropParams::x).at_least(0).doc("Same as in _image_crop.");
    schema.field("y", &UncropParams::y).at_least(0).doc("Same as in _image_crop.");
    schema.field("shape", &UncropParams::shape).doc("Shape of the image.");
  }
};

void require_inside(const char* what, int64_t first, int64_t count, int64_t size) {
  if (size == kUnknownDim || first + count <= size) return;
  throw ParamError({.input = what,
                    .expected = "a rectangle inside the image, which has " + std::to_string(size) + " along this axis",
                    .given = std::to_string(first) + " + " + std::to_string(count)});
}

void infer_crop(const CropParams& p, InferContext& c) {
  c.unify_dtypes();
  require_image(c);
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const int n = in.ndim();
  require_inside("x + width", p.x, p.width, in[n - 2]);
  require_inside("y + height", p.y, p.height, in[n - 3]);
  Shape out = in;
  out[n - 3] = p.height;
  out[n - 2] = p.width;
  c.set_out_shape(0, out);
}

// Copies the rectangle from the image, or into it.
void copy_rectangle(const TensorRef& in, const TensorRef& out, int64_t x, int64_t y, bool into) {
  const ImageSize image(into ? *out.shape : *in.shape), part(into ? *in.shape : *out.shape);
  const int64_t bytes = dtype_size(in.dtype), offset = (y * image.width + x) * image.channels;
  kernels::StridedCopy copy;
  const auto axis = [&](int64_t size, int64_t in_image, int64_t in_part) {
    copy.add_axis(size, into ? in_part : in_image, into ? in_image : in_part);
  };
  axis(part.batch, image.elements(), part.elements());
  axis(part.height, image.width * image.channels, part.width * part.channels);
  axis(part.width * part.channels, 1, 1);
  copy.run(in.as<char>() + (into ? 0 : offset * bytes), out.as<char>() + (into ? offset * bytes : 0), bytes);
}

void run_crop(const CropParams& p, const KernelArgs& a) {
  if (a.out[0].size() > 0) copy_rectangle(a.in[0], a.out[0], p.x, p.y, false);
}

void run_uncrop(const UncropParams& p, const KernelArgs& a) {
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * dtype_size(a.out[0].dtype));
  if (a.in[0].size() > 0) copy_rectangle(a.in[0], a.out[0], p.x, p.y, true);
}

Values crop_gradient(const CropParams& p, const GradientContext& g) {
  static const OpRef kUncrop{"_backward_image_crop"};
  if (!g.output_grad(0)) return {};
  return {call(kUncrop, {g.output_grad(0)}, ParamSchema<UncropParams>::box({p.x, p.y, g.input_spec(0).shape}))};
}

Values uncrop_gradient(const UncropParams& p, const GradientContext& g) {
  static const OpRef kCrop{"_image_crop"};
  if (!g.output_grad(0)) return {};
  const ImageSize part(g.input_spec(0).shape);
  return {call(kCrop, {g.output_grad(0)}, {{"x", p.x}, {"y", p.y}, {"width", part.width}, {"height", part.height}})};
}

}  // namespace

void register_image_crop(OpRegistry& ops) {
  ops.declare<CropParams>("_image_crop")
      .alias("_npx__image_crop")
      .doc("The rectangle of an image that starts at (x, y).")
      .input("data", "(height, width, channels), or a batch of those, any dtype")
      .output("output", "data with the rectangle's height and width")
      .infer(infer_crop)
      .cpu(run_crop)
      .any_device()
      .gradient(crop_gradient, Saves::nothing())
      .sample({{4, 5, 3}}, {{"x", "1"}, {"y", "2"}, {"width", "3"}, {"height", "2"}})
      .sample({{2, 3, 3, 1}}, {{"x", "0"}, {"y", "1"}, {"width", "2"}, {"height", "1"}});
  ops.declare<UncropParams>("_backward_image_crop")
      .doc("An image of zeros that contains the given rectangle: the gradient of _image_crop.")
      .input("output_grad", "the rectangle")
      .output("output", "shape given by the parameter")
      .infer([](const UncropParams& p, InferContext& c) {
        c.unify_dtypes();
        require_image(c);
        c.set_out_shape(0, p.shape);
        if (!c.in_shape(0).rank_known()) return;
        const Shape& part = c.in_shape(0);
        require_inside("x + width", p.x, part[part.ndim() - 2], p.shape[p.shape.ndim() - 2]);
        require_inside("y + height", p.y, part[part.ndim() - 3], p.shape[p.shape.ndim() - 3]);
      })
      .cpu(run_uncrop)
      .any_device()
      .gradient(uncrop_gradient, Saves::nothing())
      .internal()
      .sample({{2, 3, 3}}, {{"x", "1"}, {"y", "2"}, {"shape", "(4, 5, 3)"}});
}

}  // namespace hybridnet::ops
