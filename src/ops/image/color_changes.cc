#include "ops/image/color_changes.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/integers.h"

namespace hybridnet::ops {
namespace {

// Luminance of red, green and blue: ITU-R BT.601.
constexpr double kLuminance[3] = {0.299, 0.587, 0.114};

// Eigenvectors of the covariance of ImageNet's colors, each times its eigenvalue: Krizhevsky, Sutskever, Hinton, NIPS
// 2012, 4.1.
constexpr double kColorAxes[3][3] = {{55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009},
                                     {55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140},
                                     {55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203}};

struct Hls {
  double hue, lightness, saturation;  // hue in sixths of a turn
};

Hls to_hls(double r, double g, double b) {
  const double high = std::max({r, g, b}), low = std::min({r, g, b}), range = high - low;
  Hls out{0.0, (high + low) / 2, 0.0};
  if (range <= std::numeric_limits<double>::epsilon()) return out;
  out.saturation = out.lightness < 0.5 ? range / (high + low) : range / (2.0 - high - low);
  if (high == r)
    out.hue = (g - b) / range;
  else if (high == g)
    out.hue = (b - r) / range + 2.0;
  else
    out.hue = (r - g) / range + 4.0;
  return out;
}

// The value of one primary, whose own hue is `offset` sixths away.
double primary(const Hls& color, double offset) {
  if (color.saturation == 0.0) return color.lightness;
  const double l = color.lightness, s = color.saturation;
  const double high = l <= 0.5 ? l * (1 + s) : l + s - l * s, low = 2 * l - high;
  double h = std::fmod(color.hue + offset, 6.0);
  if (h < 0) h += 6.0;
  if (h < 1) return low + (high - low) * h;
  if (h < 3) return high;
  return h < 4 ? low + (high - low) * (4 - h) : low;
}

}  // namespace

ColorImage::ColorImage(const TensorRef& image) : channels_((*image.shape)[2]), dtype_(image.dtype) {
  pixels_ = (*image.shape)[0] * (*image.shape)[1];
  values_.resize(static_cast<size_t>(image.size()));
  dispatch_dtype(dtype_, [&](auto zero) {
    const auto* data = image.as<decltype(zero)>();
    std::transform(data, data + image.size(), values_.begin(), [](auto v) { return static_cast<double>(v); });
  });
}

void ColorImage::store(const TensorRef& out) const {
  dispatch_dtype(dtype_, [&](auto zero) {
    using T = decltype(zero);
    std::transform(values_.begin(), values_.end(), out.as<T>(),
                   [](double v) { return kernels::saturated_element<T>(v); });
  });
}

void ColorImage::round() {
  if (is_floating(dtype_)) return;
  for (double& v : values_) v = dtype_ == DType::kUInt8 ? std::trunc(std::clamp(v, 0.0, 255.0)) : std::trunc(v);
}

double ColorImage::luminance(int64_t pixel) const {
  const double* p = values_.data() + pixel * channels_;
  return channels_ == 1 ? p[0] : p[0] * kLuminance[0] + p[1] * kLuminance[1] + p[2] * kLuminance[2];
}

void ColorImage::scale(double factor) {
  for (double& v : values_) v *= factor;
  round();
}

void ColorImage::contrast(double factor) {
  if (pixels_ == 0) return;
  double sum = 0;
  for (int64_t i = 0; i < pixels_; ++i) sum += luminance(i);
  const double rest = (1 - factor) * static_cast<double>(sum / static_cast<double>(pixels_));
  for (double& v : values_) v = v * factor + rest;
  round();
}

void ColorImage::saturation(double factor) {
  if (channels_ == 1) return;
  for (int64_t i = 0; i < pixels_; ++i) {
    const double rest = (1 - factor) * luminance(i);
    for (int64_t c = 0; c < 3; ++c) {
      double& v = values_[static_cast<size_t>(3 * i + c)];
      v = v * factor + rest;
    }
  }
  round();
}

void ColorImage::rotate_hue(double turns) {
  if (channels_ == 1) return;
  for (int64_t i = 0; i < pixels_; ++i) {
    double* p = values_.data() + 3 * i;
    Hls color = to_hls(p[0] / 255.0, p[1] / 255.0, p[2] / 255.0);
    color.hue += turns * 6.0;
    p[0] = primary(color, 2.0) * 255.0;
    p[1] = primary(color, 0.0) * 255.0;
    p[2] = primary(color, 4.0) * 255.0;
  }
  round();
}

void ColorImage::light(const double (&alpha)[3]) {
  if (channels_ == 1) return;
  for (int64_t c = 0; c < 3; ++c) {
    const double shift = kColorAxes[c][0] * alpha[0] + kColorAxes[c][1] * alpha[1] + kColorAxes[c][2] * alpha[2];
    for (int64_t i = 0; i < pixels_; ++i) values_[static_cast<size_t>(3 * i + c)] += shift;
  }
  round();
}

void infer_color(InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  const Shape& s = c.in_shape(0);
  if (!s.rank_known()) return;
  const bool good = s.ndim() == 3 && (s[2] == 1 || s[2] == 3 || s[2] == kUnknownDim);
  if (!good)
    throw ShapeError(
        {.input = "data", .expected = "(height, width, channels) with 1 or 3 channels", .given = "shape " + s.str()});
}

}  // namespace hybridnet::ops
