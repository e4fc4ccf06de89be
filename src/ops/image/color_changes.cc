#include "ops/image/color_changes.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/integers.h"
#include "kernels/functors/colors.h"
#include "ops/device_launch.h"

namespace hybridnet::ops {
namespace {

// Eigenvectors of the covariance of ImageNet's colors, each times its eigenvalue: Krizhevsky, Sutskever, Hinton, NIPS
// 2012, 4.1.
constexpr double kColorAxes[3][3] = {{55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009},
                                     {55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140},
                                     {55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203}};

}  // namespace

ColorImage::ColorImage(const TensorRef& image) : channels_((*image.shape)[2]), dtype_(image.dtype) {
  pixels_ = (*image.shape)[0] * (*image.shape)[1];
  if (device::current()) {
    const auto bytes = image.size() * static_cast<int64_t>(sizeof(double));
    on_device_ =
        std::make_unique<OwnedBlock>(bytes + static_cast<int64_t>(sizeof(double)), device::current()->device());
    kernels::convert_parallel(dtype_, image.data, DType::kFloat64, on_device_->data(), image.size());
    return;
  }
  values_.resize(static_cast<size_t>(image.size()));
  dispatch_dtype(dtype_, [&](auto zero) {
    const auto* data = image.as<decltype(zero)>();
    std::transform(data, data + image.size(), values_.begin(), [](auto v) { return static_cast<double>(v); });
  });
}

void ColorImage::change(const char* kind, device::ColorArguments a) const {
  a.values = static_cast<double*>(on_device_->data());
  a.pixels = pixels_;
  a.channels = channels_;
  a.mean = a.values + pixels_ * channels_;
  a.rounds = is_floating(dtype_) ? 0 : dtype_ == DType::kUInt8 ? 2 : 1;
  on_device::launch("image.cuh", "ColorArguments", kind, pixels_, a);
}

void ColorImage::store(const TensorRef& out) const {
  if (on_device_) {
    const device::ColorArguments a{
        .values = static_cast<double*>(on_device_->data()), .n = out.size(), .out = out.data};
    return on_device::launch("image.cuh", "ColorArguments", on_device::with_dtype("store_colors", dtype_), a.n, a);
  }
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
  return kernels::luminance(values_.data() + pixel * channels_, channels_);
}

void ColorImage::scale(double factor) {
  if (on_device_) return change("scale_colors", {.factor = factor});
  for (double& v : values_) v *= factor;
  round();
}

void ColorImage::contrast(double factor) {
  if (pixels_ == 0) return;
  if (on_device_) {
    const device::ColorArguments a{.values = static_cast<double*>(on_device_->data()),
                                   .mean = static_cast<double*>(on_device_->data()) + pixels_ * channels_,
                                   .pixels = pixels_,
                                   .channels = channels_};
    on_device::launch_rows("image.cuh", "ColorArguments", "mean_luminance", 1, a);
    return change("contrast_colors", {.factor = factor});
  }
  double sum = 0;
  for (int64_t i = 0; i < pixels_; ++i) sum += luminance(i);
  const double rest = (1 - factor) * static_cast<double>(sum / static_cast<double>(pixels_));
  for (double& v : values_) v = v * factor + rest;
  round();
}

void ColorImage::saturation(double factor) {
  if (channels_ == 1) return;
  if (on_device_) return change("saturate_colors", {.factor = factor});
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
  if (on_device_) return change("rotate_hues", {.factor = turns});
  for (int64_t i = 0; i < pixels_; ++i) kernels::rotate_hue(values_.data() + 3 * i, turns);
  round();
}

void ColorImage::light(const double (&alpha)[3]) {
  if (channels_ == 1) return;
  double shift[3];
  for (int64_t c = 0; c < 3; ++c)
    shift[c] = kColorAxes[c][0] * alpha[0] + kColorAxes[c][1] * alpha[1] + kColorAxes[c][2] * alpha[2];
  if (on_device_) return change("light_colors", {.shift = {shift[0], shift[1], shift[2]}});
  for (int64_t i = 0; i < pixels_; ++i)
    for (int64_t c = 0; c < 3; ++c) values_[static_cast<size_t>(3 * i + c)] += shift[c];
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
