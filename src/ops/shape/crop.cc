// Crop: crops an image to a size, or to the size of another image.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet::ops {
namespace {

struct CropParams {
  int32_t num_args;
  Tuple offset, h_w;
  bool center_crop;
  static void describe(ParamSchema<CropParams>& schema) {
    schema.field("num_args", &CropParams::num_args)
        .range(1, 2)
        .doc("1: crop to h_w; 2: crop to the size of the second input.");
    schema.field("offset", &CropParams::offset)
        .default_value(AttrValue(Tuple({0, 0})))
        .doc("First row and column that are kept.");
    schema.field("h_w", &CropParams::h_w)
        .default_value(AttrValue(Tuple({0, 0})))
        .doc("Height and width that are kept, if there is one input.");
    schema.field("center_crop", &CropParams::center_crop)
        .default_value(false)
        .doc("Whether to crop at the center instead of at offset.");
    schema.check([](const CropParams& p) {
      if (p.offset.ndim() != 2)
        throw ParamError({.input = "offset", .expected = "two numbers", .given = p.offset.str()});
      if (p.h_w.ndim() != 2) throw ParamError({.input = "h_w", .expected = "two numbers", .given = p.h_w.str()});
    });
  }
};

SliceRanges crop_ranges(const CropParams& p, const Shape& in, int64_t height, int64_t width) {
  const int64_t sizes[] = {height, width};
  SliceRanges ranges = {{0, 1, in[0]}, {0, 1, in[1]}};
  for (int i = 0; i < 2; ++i) {
    const bool fits = sizes[i] >= 0 && sizes[i] <= in[2 + i];
    const int64_t begin = !p.center_crop ? p.offset[i] : fits ? (in[2 + i] - sizes[i]) / 2 : 0;
    if (!fits || begin < 0 || begin > in[2 + i] - sizes[i]) {
      throw ShapeError(
          {.input = "data",
           .expected = "a crop inside axis " + std::to_string(2 + i),
           .given = in.str(),
           .because = "the crop begins at " + std::to_string(begin) + " and has size " + std::to_string(sizes[i])});
    }
    ranges.push_back({begin, 1, sizes[i]});
  }
  return ranges;
}

SliceRanges crop_ranges(const CropParams& p, const Shape& in, const Shape* like) {
  return crop_ranges(p, in, like ? (*like)[2] : p.h_w[0], like ? (*like)[3] : p.h_w[1]);
}

void infer_crop(const CropParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  if (c.num_in() == 2) c.set_in_shape(1, Shape::unknown(4));
  if (!c.in_shape(0).known() || (c.num_in() == 2 && !c.in_shape(1).known())) return;
  c.set_out_shape(0, sliced_shape(crop_ranges(p, c.in_shape(0), c.num_in() == 2 ? &c.in_shape(1) : nullptr)));
}

Values crop_gradient(const CropParams& p, const GradientContext& g) {
  const Shape& in = g.input_spec(0).shape;
  Values grads(static_cast<size_t>(g.num_inputs()));
  grads[0] =
      place_slice(g.output_grad(0), crop_ranges(p, in, g.num_inputs() == 2 ? &g.input_spec(1).shape : nullptr), in);
  return grads;
}

}  // namespace

void register_crop(OpRegistry& ops) {
  ops.declare<CropParams>("Crop")
      .doc("Crops images to h_w, or to the height and width of a second tensor.")
      .variadic_input("data", "num_args", "shape (N, C, H, W); the second defines height and width only")
      .output("output", "shape (N, C, height, width)")
      .infer(infer_crop)
      .any_device()
      .cpu([](const CropParams& p, const KernelArgs& a) {
        read_slice(crop_ranges(p, *a.in[0].shape, a.in.size() == 2 ? a.in[1].shape : nullptr), a.in[0], a.out[0]);
      })
      .gradient(crop_gradient, Saves::nothing())
      .sample({{1, 2, 4, 5}}, {{"num_args", "1"}, {"offset", "(1, 2)"}, {"h_w", "(2, 3)"}})
      .sample({{1, 2, 4, 5}, {1, 1, 2, 3}}, {{"num_args", "2"}, {"center_crop", "True"}});
}

}  // namespace hybridnet::ops
