// Operators that change the colors of an image by random amounts, one kind of change each; _image_adjust_lighting
// changes them by given amounts.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/random/rng.h"
#include "ops/image/color_changes.h"

namespace hybridnet::ops {
namespace {

struct EnhanceParams {
  double min_factor, max_factor;
  static void describe(ParamSchema<EnhanceParams>& schema) {
    schema.field("min_factor", &EnhanceParams::min_factor).at_least(0).doc("Smallest factor drawn.");
    schema.field("max_factor", &EnhanceParams::max_factor).at_least(0).doc("Largest factor drawn.");
    schema.check([](const EnhanceParams& p) {
      if (p.min_factor <= p.max_factor) return;
      throw ParamError({.input = "max_factor",
                        .expected = "at least min_factor, " + AttrValue(p.min_factor).str(),
                        .given = AttrValue(p.max_factor).str()});
    });
  }
};

struct LightingParams {
  std::vector<double> alpha;
  static void describe(ParamSchema<LightingParams>& schema) {
    schema.field("alpha", &LightingParams::alpha).doc("Amounts to add along the three principal components of colors.");
    schema.check([](const LightingParams& p) {
      if (p.alpha.size() != 3)
        throw ParamError({.input = "alpha", .expected = "3 numbers", .given = std::to_string(p.alpha.size())});
    });
  }
};

struct RandomLightingParams {
  double alpha_std;
  static void describe(ParamSchema<RandomLightingParams>& schema) {
    schema.field("alpha_std", &RandomLightingParams::alpha_std)
        .default_value(0.05)
        .at_least(0)
        .doc("Standard deviation of the amounts along the principal components of colors.");
  }
};

template <typename P>
OpBuilder<P> declare_color(OpRegistry& ops, const std::string& name) {
  return ops.declare<P>("_image_" + name)
      .alias("_npx__image_" + name)
      .input("data", "(height, width, channels), 1 or 3 channels; bytes stay in [0, 255]")
      .output("output", "shape and dtype of data")
      .inplace(0, 0)
      .any_device()
      .infer([](const P&, InferContext& c) { infer_color(c); })
      .gradient(kNotDifferentiable);
}

void declare_enhancement(OpRegistry& ops, const std::string& name, void (ColorImage::*change)(double),
                         const char* doc) {
  declare_color<EnhanceParams>(ops, name)
      .doc(doc)
      .cpu(
          [change](const EnhanceParams& p, const KernelArgs& a) {
            const double drawn = kernels::ElementBits(a.rng, 0).uniform();
            ColorImage image(a.in[0]);
            (image.*change)(p.min_factor + (p.max_factor - p.min_factor) * drawn);
            image.store(a.out[0]);
          },
          kNumeric)
      .random()
      .sample({{3, 4, 3}}, {{"min_factor", "0.5"}, {"max_factor", "1.5"}}, 0.0, 255.0)
      .sample({{2, 2, 1}}, {{"min_factor", "0.5"}, {"max_factor", "0.5"}}, 0.0, 255.0);
}

void run_lighting(const KernelArgs& a, const double (&alpha)[3]) {
  ColorImage image(a.in[0]);
  image.light(alpha);
  image.store(a.out[0]);
}

}  // namespace

void register_image_color(OpRegistry& ops) {
  declare_enhancement(ops, "random_brightness", &ColorImage::scale,
                      "All values times a random factor between min_factor and max_factor.");
  declare_enhancement(ops, "random_contrast", &ColorImage::contrast,
                      "Scales the distances of values from the image's mean luminance by a random factor.");
  declare_enhancement(ops, "random_saturation", &ColorImage::saturation,
                      "Scales the distances of values from their pixel's luminance by a random factor.");
  declare_enhancement(ops, "random_hue", &ColorImage::rotate_hue,
                      "Rotates hues by a random fraction of the color circle.");
  declare_color<LightingParams>(ops, "adjust_lighting")
      .doc(
          "Adds amounts along the principal components of ImageNet's colors (Krizhevsky et al., NIPS 2012, section "
          "4.1).")
      .cpu(
          [](const LightingParams& p, const KernelArgs& a) {
            run_lighting(a, {p.alpha[0], p.alpha[1], p.alpha[2]});
          },
          kNumeric)
      .gradient([](const LightingParams&, const GradientContext& g) { return Values{g.output_grad(0)}; },
                Saves::nothing())
      .sample({{3, 4, 3}}, {{"alpha", "(0.1, -0.2, 0.3)"}}, 0.0, 255.0)
      .sample({{2, 2, 1}}, {{"alpha", "(1, 1, 1)"}}, 0.0, 255.0);
  declare_color<RandomLightingParams>(ops, "random_lighting")
      .doc("_image_adjust_lighting with normally distributed amounts.")
      .cpu(
          [](const RandomLightingParams& p, const KernelArgs& a) {
            double alpha[3];
            for (uint64_t i = 0; i < 3; ++i) {
              kernels::ElementBits bits(a.rng, i);
              const double radius = std::sqrt(-2.0 * std::log(bits.uniform_positive()));
              alpha[i] = p.alpha_std * radius * std::cos(6.283185307179586 * bits.uniform());
            }
            run_lighting(a, alpha);
          },
          kNumeric)
      .random()
      .sample({{3, 4, 3}}, {{"alpha_std", "0.1"}}, 0.0, 255.0);
}

}  // namespace hybridnet::ops
