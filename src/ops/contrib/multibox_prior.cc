// _contrib_MultiBoxPrior: anchors of several sizes and ratios around every pixel of a feature map.
//   Liu et al.: SSD: Single Shot MultiBox Detector, ECCV 2016, section 2.2.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/box_arguments.h"
#include "ops/contrib/boxes.h"
#include "ops/device_launch.h"
#include "ops/device_table.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct PriorParams {
  std::vector<double> sizes, ratios, steps, offsets;
  bool clip;
  static void describe(ParamSchema<PriorParams>& schema) {
    schema.field("sizes", &PriorParams::sizes)
        .default_value(AttrValue::List{1.0})
        .doc("Heights of the anchors, as fractions of the image.");
    schema.field("ratios", &PriorParams::ratios)
        .default_value(AttrValue::List{1.0})
        .doc("Width divided by height. The first is combined with every size, the others with the first size.");
    schema.field("clip", &PriorParams::clip).default_value(false).doc("Whether anchors are clipped to the image.");
    schema.field("steps", &PriorParams::steps)
        .default_value(AttrValue::List{-1.0, -1.0})
        .doc(
            "Distances of pixels along y and x, as fractions of the image; not positive: the inverse of the size of "
            "data.");
    schema.field("offsets", &PriorParams::offsets)
        .default_value(AttrValue::List{0.5, 0.5})
        .doc("Position of the anchors' center in a pixel, along y and x, each in [0, 1].");
    schema.check(check);
  }
  static void check(const PriorParams& p) {
    const auto require = [](bool good, const char* field, const char* expected, size_t given) {
      if (!good) throw ParamError({.input = field, .expected = expected, .given = std::to_string(given) + " numbers"});
    };
    require(!p.sizes.empty(), "sizes", "at least one number", p.sizes.size());
    require(!p.ratios.empty(), "ratios", "at least one number", p.ratios.size());
    require(p.steps.size() == 2, "steps", "two numbers: along y and x", p.steps.size());
    require(p.offsets.size() == 2, "offsets", "two numbers: along y and x", p.offsets.size());
    if (p.steps[0] * p.steps[1] < 0)
      throw ParamError({.input = "steps",
                        .expected = "both positive or neither",
                        .given = AttrValue(AttrValue::List{p.steps[0], p.steps[1]}).str()});
    for (double offset : p.offsets)
      if (offset < 0 || offset > 1)
        throw ParamError({.input = "offsets", .expected = "numbers in [0, 1]", .given = AttrValue(offset).str()});
    for (double ratio : p.ratios)
      if (!(ratio > 0))
        throw ParamError({.input = "ratios", .expected = "positive numbers", .given = AttrValue(ratio).str()});
  }
  int64_t per_pixel() const { return static_cast<int64_t>(sizes.size() + ratios.size()) - 1; }
};

void infer_prior(const PriorParams& p, InferContext& c) {
  c.unify_dtypes();
  c.set_in_shape(0, Shape::unknown(4));
  const Shape& data = c.in_shape(0);
  const bool known = data[2] != kUnknownDim && data[3] != kUnknownDim;
  if (known && (data[2] < 1 || data[3] < 1))
    throw ShapeError({.input = "data", .expected = "height and width of at least 1", .given = "shape " + data.str()});
  c.set_out_shape(0, Shape({1, known ? data[2] * data[3] * p.per_pixel() : kUnknownDim, 4}));
}

using HalfSize = device::HalfSize;

// Half sizes are the same for every pixel. Ratios refer to the image, which may not be square, so widths are scaled by
// height / width.
Temporary<HalfSize> half_sizes(const PriorParams& p, double height_by_width) {
  Temporary<HalfSize> half;
  const auto add = [&](double size, double ratio) {
    half.push_back({size * height_by_width * std::sqrt(ratio) / 2, size / std::sqrt(ratio) / 2});
  };
  for (double size : p.sizes) add(size, p.ratios[0]);
  for (size_t j = 1; j < p.ratios.size(); ++j) add(p.sizes[0], p.ratios[j]);
  return half;
}

void run_prior(const PriorParams& p, const KernelArgs& a) {
  const int64_t height = (*a.in[0].shape)[2], width = (*a.in[0].shape)[3];
  const bool automatic = p.steps[0] <= 0 || p.steps[1] <= 0;
  const double step_y = automatic ? 1.0 / static_cast<double>(height) : p.steps[0];
  const double step_x = automatic ? 1.0 / static_cast<double>(width) : p.steps[1];
  const Temporary<HalfSize> half = half_sizes(p, static_cast<double>(height) / static_cast<double>(width));
  if (device::current()) {
    const DeviceTable<HalfSize> table(half);
    const device::PriorArguments priors{.half = table.data(),
                                        .out = a.out[0].data,
                                        .pixels = height * width,
                                        .width = width,
                                        .per_pixel = p.per_pixel(),
                                        .offset_y = p.offsets[0],
                                        .offset_x = p.offsets[1],
                                        .step_y = step_y,
                                        .step_x = step_x,
                                        .clip = p.clip};
    return on_device::launch("boxes.cuh", "PriorArguments", on_device::with_dtype("priors", a.out[0].dtype),
                             priors.pixels * priors.per_pixel, priors);
  }
  const auto bounded = [&](double v) { return p.clip ? std::clamp(v, 0.0, 1.0) : v; };
  dispatch_floating(a.out[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto store = [&](T& to, double v) { to = static_cast<T>(static_cast<accumulator_t<T>>(bounded(v))); };
    parallel_for(height * width, 80.0, [&](int64_t begin, int64_t end) {
      T* out = a.out[0].as<T>() + begin * p.per_pixel() * 4;
      for (int64_t i = begin; i < end; ++i) {
        const double y = (static_cast<double>(i / width) + p.offsets[0]) * step_y;
        const double x = (static_cast<double>(i % width) + p.offsets[1]) * step_x;
        for (const HalfSize& s : half) {
          store(out[0], x - s.w);
          store(out[1], y - s.h);
          store(out[2], x + s.w);
          store(out[3], y + s.h);
          out += 4;
        }
      }
    });
  });
}

}  // namespace

void register_multibox_prior(OpRegistry& ops) {
  ops.declare<PriorParams>("_contrib_MultiBoxPrior")
      .alias("_npx_multibox_prior")
      .doc(
          "Anchors (left, top, right, bottom), as fractions of the image, around every pixel of data: each size with "
          "the first ratio, the first size with the other ratios.")
      .input("data", "feature map (batch, channels, height, width); only its size matters")
      .names_its_input()
      .output("output", "(1, height * width * (sizes + ratios - 1), 4)")
      .infer(infer_prior)
      .cpu(run_prior, kFloating)
      .any_device()
      .gradient([](const PriorParams&, const GradientContext&) { return Values{}; }, Saves::nothing())
      .amp(AmpType::kFloat)
      .sample({{1, 2, 2, 3}}, {{"sizes", "(0.5, 0.25)"}, {"ratios", "(1, 2, 0.5)"}})
      .sample({{2, 1, 3, 2}}, {{"clip", "True"}, {"steps", "(0.3, 0.4)"}, {"offsets", "(0, 1)"}});
}

}  // namespace hybridnet::ops
