// Color transforms of images in host memory.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/image_colors.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "kernels/image/host_images.h"

#ifndef HYBRIDNET_IMAGE_COLORS_TYPES_
#define HYBRIDNET_IMAGE_COLORS_TYPES_
namespace hybridnet::kernels {

// Lookup tables of shift_hls(): reciprocals of its divisors, and the distance of each primary from the lightness at
// each hue, relative to the largest distance.
struct HlsTables {
  std::array<float, 511> reciprocal{};
  std::array<std::array<float, 3>, 181> distance{};
  HlsTables() {
    for (size_t k = 1; k < reciprocal.size(); ++k) reciprocal[k] = 1.0F / static_cast<float>(k);
    for (size_t hue = 0; hue < distance.size(); ++hue) {
      for (size_t primary = 0; primary < 3; ++primary) {
        constexpr double kOffsets[3] = {0, 8, 4};  // on the circle of 12 steps
        const double k = std::fmod(kOffsets[primary] + static_cast<double>(hue) / 15, 12.0);
        distance[hue][primary] = static_cast<float>(-std::clamp(std::min(k - 3, 9 - k), -1.0, 1.0));
      }
    }
  }
};
inline const HlsTables& hls_tables() {
  static const HlsTables tables;
  return tables;
}

struct PlanesJob {
  const float* mean;
  bool mean_is_image;
  float factor, offset;
  const float* scale;
};

}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <typename T>
HWY_INLINE T to_element(float value) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(static_cast<int32_t>(std::rint(std::min(std::max(value, 0.0F), 255.0F))));
  else
    return value;
}

HWY_INLINE int whole(float value) { return static_cast<int>(std::lrint(value)); }

void shift(const uint8_t* from, int64_t pixels, int add_hue, int add_lightness, int add_saturation, uint8_t* to) {
  const HlsTables& tables = hls_tables();
  for (int64_t i = 0; i < pixels; ++i, from += 3, to += 3) {
    const int red = from[0], green = from[1], blue = from[2];
    const int high = std::max({red, green, blue}), low = std::min({red, green, blue});
    const int spread = high - low, sum = high + low;
    const int full = std::max(sum <= 255 ? sum : 510 - sum, 1);
    int saturation = whole(255.0F * static_cast<float>(spread) * tables.reciprocal[static_cast<size_t>(full)]);
    int difference = red - green, begin = 120;
    if (high == red) {
      difference = green - blue, begin = green < blue ? 180 : 0;
    } else if (high == green) {
      difference = blue - red, begin = 60;
    }
    const float turn = 30.0F * static_cast<float>(difference) * tables.reciprocal[static_cast<size_t>(spread)];
    const int hue = std::clamp(whole(turn) + begin + add_hue, 0, 180);
    const int lightness = std::clamp(sum / 2 + (sum & (sum / 2) & 1) + add_lightness, 0, 255);
    saturation = std::clamp(saturation + add_saturation, 0, 255);
    const float reach = static_cast<float>(saturation * std::min(lightness, 255 - lightness)) * (1.0F / 255.0F);
    const auto& distance = tables.distance[static_cast<size_t>(hue)];
    for (size_t c = 0; c < 3; ++c) to[c] = to_element<uint8_t>(static_cast<float>(lightness) + reach * distance[c]);
  }
}

template <typename T>
void map_pixels(const T* HWY_RESTRICT from, int64_t pixels, const float* m, const float* offset, T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < pixels; ++i) {
    const auto r = static_cast<float>(from[3 * i]), g = static_cast<float>(from[3 * i + 1]),
               b = static_cast<float>(from[3 * i + 2]);
    to[3 * i] = to_element<T>(m[0] * r + m[1] * g + m[2] * b + offset[0]);
    to[3 * i + 1] = to_element<T>(m[3] * r + m[4] * g + m[5] * b + offset[1]);
    to[3 * i + 2] = to_element<T>(m[6] * r + m[7] * g + m[8] * b + offset[2]);
  }
}
void map_bytes(const uint8_t* from, int64_t n, const float* m, const float* offset, uint8_t* to) {
  map_pixels(from, n, m, offset, to);
}
void map_floats(const float* from, int64_t n, const float* m, const float* offset, float* to) {
  map_pixels(from, n, m, offset, to);
}

template <typename T>
void scale_elements(const T* HWY_RESTRICT from, int64_t n, float factor, float offset, T* HWY_RESTRICT to) {
  for (int64_t i = 0; i < n; ++i) to[i] = to_element<T>(factor * static_cast<float>(from[i]) + offset);
}
void scale_bytes(const uint8_t* from, int64_t n, float factor, float offset, uint8_t* to) {
  scale_elements(from, n, factor, offset, to);
}
void scale_floats(const float* from, int64_t n, float factor, float offset, float* to) {
  scale_elements(from, n, factor, offset, to);
}

template <int kChannels>
HWY_INLINE void split(const uint8_t* HWY_RESTRICT from, int64_t pixels, const PlanesJob& job, float* HWY_RESTRICT to) {
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t c = 0; c < kChannels; ++c) {
      const float mean = job.mean[job.mean_is_image ? i * kChannels + c : c];
      to[c * pixels + i] =
          ((static_cast<float>(from[i * kChannels + c]) - mean) * job.factor + job.offset) * job.scale[c];
    }
  }
}

void planes(const uint8_t* from, int64_t pixels, int64_t channels, const PlanesJob& job, float* to) {
  if (channels == 3) {
    split<3>(from, pixels, job, to);
  } else {
    split<1>(from, pixels, job, to);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(shift);
HWY_EXPORT(map_bytes);
HWY_EXPORT(map_floats);
HWY_EXPORT(scale_bytes);
HWY_EXPORT(scale_floats);
HWY_EXPORT(planes);
}  // namespace
}  // namespace hybridnet::kernels

namespace hybridnet {
using namespace kernels;

void shift_hls(const uint8_t* from, int64_t pixels, int hue, int lightness, int saturation, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(shift)(from, pixels, hue, lightness, saturation, to);
}
void map_colors(const uint8_t* from, int64_t pixels, const float (&matrix)[9], const float (&offset)[3], uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(map_bytes)(from, pixels, matrix, offset, to);
}
void map_colors(const float* from, int64_t pixels, const float (&matrix)[9], const float (&offset)[3], float* to) {
  HWY_DYNAMIC_DISPATCH(map_floats)(from, pixels, matrix, offset, to);
}
void scale_values(const uint8_t* from, int64_t n, float factor, float offset, uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(scale_bytes)(from, n, factor, offset, to);
}
void scale_values(const float* from, int64_t n, float factor, float offset, float* to) {
  HWY_DYNAMIC_DISPATCH(scale_floats)(from, n, factor, offset, to);
}
void image_to_planes(const uint8_t* from, const ImageShape& shape, const float* mean, bool mean_is_image, float factor,
                     float offset, const float* scale, float* to) {
  HWY_DYNAMIC_DISPATCH(planes)
  (from, shape.height * shape.width, shape.channels, {mean, mean_is_image, factor, offset, scale}, to);
}

}  // namespace hybridnet
#endif
