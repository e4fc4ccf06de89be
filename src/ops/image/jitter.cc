// _image_random_color_jitter: brightness, contrast, saturation and hue in a random order.
#include <utility>

#include "hybridnet/declare.h"
#include "kernels/random/rng.h"
#include "ops/image/color_changes.h"

namespace hybridnet::ops {
namespace {

struct JitterParams {
  double brightness, contrast, saturation, hue;
  static void describe(ParamSchema<JitterParams>& schema) {
    schema.field("brightness", &JitterParams::brightness)
        .at_least(0)
        .doc("The factor is drawn from 1 - brightness to 1 + brightness.");
    schema.field("contrast", &JitterParams::contrast)
        .at_least(0)
        .doc("The factor is drawn from 1 - contrast to 1 + contrast.");
    schema.field("saturation", &JitterParams::saturation)
        .at_least(0)
        .doc("The factor is drawn from 1 - saturation to 1 + saturation.");
    schema.field("hue", &JitterParams::hue)
        .at_least(0)
        .doc("The fraction of the color circle is drawn from -hue to hue.");
  }
};

void run_jitter(const JitterParams& p, const KernelArgs& a) {
  struct Change {
    double range, center;
    void (ColorImage::*apply)(double);
  };
  Change changes[] = {{p.brightness, 1.0, &ColorImage::scale},
                      {p.contrast, 1.0, &ColorImage::contrast},
                      {p.saturation, 1.0, &ColorImage::saturation},
                      {p.hue, 0.0, &ColorImage::rotate_hue}};
  kernels::ElementBits bits(a.rng, 0);
  for (uint32_t i = 3; i > 0; --i) std::swap(changes[i], changes[bits.next() % (i + 1)]);  // Fisher and Yates
  ColorImage image(a.in[0]);
  for (const Change& change : changes) {
    const double drawn = 2.0 * bits.uniform() - 1.0;
    if (change.range > 0) (image.*change.apply)(change.center + change.range * drawn);
  }
  image.store(a.out[0]);
}

}  // namespace

void register_image_jitter(OpRegistry& ops) {
  ops.declare<JitterParams>("_image_random_color_jitter")
      .alias("_npx__image_random_color_jitter")
      .doc("Changes brightness, contrast, saturation and hue by random amounts, in a random order.")
      .input("data", "(height, width, channels), 1 or 3 channels; bytes stay in [0, 255]")
      .output("output", "shape and dtype of data")
      .inplace(0, 0)
      .infer([](const JitterParams&, InferContext& c) { infer_color(c); })
      .cpu(run_jitter, kNumeric)
      .any_device()
      .random()
      .gradient(kNotDifferentiable)
      .sample({{3, 4, 3}}, {{"brightness", "0.2"}, {"contrast", "0.2"}, {"saturation", "0.2"}, {"hue", "0.1"}}, 0.0,
              255.0);
}

}  // namespace hybridnet::ops
