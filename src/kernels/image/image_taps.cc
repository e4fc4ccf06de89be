#include "kernels/image/image_taps.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hybridnet::kernels {
namespace {

// R. Keys: Cubic Convolution Interpolation for Digital Image Processing, IEEE TASSP 1981; a = -0.75 like OpenCV's.
double cubic(double d) {
  constexpr double a = -0.75;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0;
}
double sinc(double x) { return x == 0 ? 1.0 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

void normalize_weights(ImageTaps& t, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    double* w = t.weight.data() + i * t.count;
    double sum = 0;
    for (int64_t k = 0; k < t.count; ++k) sum += w[k];
    for (int64_t k = 0; k < t.count; ++k) w[k] /= sum;
  }
}

ImageTaps area_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  ImageTaps t;
  t.count = static_cast<int64_t>(std::ceil(scale)) + 1;
  for (int64_t i = 0; i < to; ++i) {
    const double begin = static_cast<double>(i) * scale, end = begin + scale;
    const int64_t first = static_cast<int64_t>(begin);
    for (int64_t k = 0; k < t.count; ++k) {
      const double left = static_cast<double>(first + k);
      t.index.push_back(std::min(first + k, from - 1));
      t.weight.push_back(std::max(std::min(left + 1, end) - std::max(left, begin), 0.0));
    }
  }
  normalize_weights(t, to);
  return t;
}

ImageTaps nearest_taps(int64_t from, int64_t to) {
  ImageTaps t;
  t.count = 1;
  t.weight.assign(static_cast<size_t>(to), 1.0);
  // The step is rounded the way OpenCV rounds it; otherwise some elements would be taken from a neighbor.
  const double step = 1 / (static_cast<double>(to) / static_cast<double>(from));
  for (int64_t i = 0; i < to; ++i)
    t.index.push_back(std::min(static_cast<int64_t>(static_cast<double>(i) * step), from - 1));
  return t;
}

}  // namespace

double image_filter(Interpolation method, double distance) {
  const double d = std::abs(distance);
  if (method == Interpolation::kCubic) return cubic(d);
  if (method == Interpolation::kLanczos) return d < 4 ? sinc(d) * sinc(d / 4) : 0.0;
  return std::max(1 - d, 0.0);
}

int64_t image_filter_reach(Interpolation method) {
  return method == Interpolation::kCubic ? 2 : method == Interpolation::kLanczos ? 4 : 1;
}

ImageTaps image_taps(int64_t from, int64_t to, Interpolation method) {
  if (method == Interpolation::kNearest) return nearest_taps(from, to);
  if (method == Interpolation::kArea && to < from) return area_taps(from, to);
  const int64_t reach = image_filter_reach(method);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  ImageTaps t;
  t.count = 2 * reach;
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const int64_t base = static_cast<int64_t>(std::floor(center));
    for (int64_t k = 1 - reach; k <= reach; ++k) {
      t.index.push_back(std::clamp<int64_t>(base + k, 0, from - 1));
      t.weight.push_back(image_filter(method, center - static_cast<double>(base + k)));
    }
  }
  normalize_weights(t, to);
  return t;
}

}  // namespace hybridnet::kernels
