// Affine maps of images of bytes. Positions are multiples of 1/32 pixel, like OpenCV's, so the weights of every
// filter are a small table.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/image_warp.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/image/host_images.h"
#include "kernels/image/image_taps.h"

#ifndef HYBRIDNET_IMAGE_WARP_TYPES_
#define HYBRIDNET_IMAGE_WARP_TYPES_
namespace hybridnet::kernels {

inline constexpr int kFractionBits = 5, kPositionBits = 10;  // fraction bits of a used position, and of a computed one
inline constexpr int64_t kFractions = 1 << kFractionBits;

struct WarpJob {
  const uint8_t* from;
  ImageShape shape;
  const double* source;  // two rows of three
  int64_t height, width;
  uint8_t fill;
  uint8_t* to;
};

// Clamps positions far outside of any image, but far from the limits of the type.
inline int64_t fixed_position(double value) {
  constexpr double kLimit = 1LL << 50;
  if (std::isnan(value)) return static_cast<int64_t>(kLimit);
  return std::llrint(std::clamp(value * (1 << kPositionBits), -kLimit, kLimit));
}

// weight(f, k) is the weight of tap k for a position f / 32 after a pixel. The weights of each fraction add up to 1.
template <int kTaps>
struct WarpWeights {
  std::array<std::array<float, kTaps>, kFractions> weight;
  explicit WarpWeights(Interpolation method) {
    for (size_t f = 0; f < kFractions; ++f) {
      double exact[kTaps], sum = 0;
      for (int k = 0; k < kTaps; ++k)
        sum += exact[k] = image_filter(method, static_cast<double>(f) / kFractions - (k + 1 - kTaps / 2));
      for (int k = 0; k < kTaps; ++k) weight[f][static_cast<size_t>(k)] = static_cast<float>(exact[k] / sum);
    }
  }
};

template <int kTaps>
const WarpWeights<kTaps>& warp_weights() {
  static const WarpWeights<kTaps> weights(kTaps == 4 ? Interpolation::kCubic : Interpolation::kLanczos);
  return weights;
}

}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// A square of pixels whose corner is (x, y), in rows of `stride` bytes: the image itself, or a copy with the fill value
// for the pixels outside of the image.
template <int kTaps, int kChannels>
class Square {
 public:
  explicit Square(const WarpJob& job)
      : job_(job), channels_(kChannels > 0 ? kChannels : job.shape.channels), copy_(size()) {}

  HWY_INLINE void move_to(int64_t x, int64_t y) {
    const int64_t height = job_.shape.height, width = job_.shape.width;
    if (x >= 0 && y >= 0 && x + kTaps <= width && y + kTaps <= height) {
      data = job_.from + (y * width + x) * channels_;
      stride = width * channels_;
    } else {
      copy(x, y);
    }
  }

  const uint8_t* data = nullptr;
  int64_t stride = 0;

 private:
  size_t size() const { return static_cast<size_t>(kTaps * kTaps * channels_); }

  void copy(int64_t x, int64_t y) {
    const int64_t height = job_.shape.height, width = job_.shape.width;
    std::memset(copy_.data(), job_.fill, size());
    const int64_t left = std::clamp<int64_t>(-x, 0, kTaps), right = std::clamp<int64_t>(width - x, left, kTaps);
    for (int64_t row = 0; row < kTaps && left < right; ++row) {
      if (y + row < 0 || y + row >= height) continue;
      std::memcpy(copy_.data() + (row * kTaps + left) * channels_,
                  job_.from + ((y + row) * width + x + left) * channels_,
                  static_cast<size_t>((right - left) * channels_));
    }
    data = copy_.data();
    stride = kTaps * channels_;
  }

  const WarpJob& job_;
  const int64_t channels_;
  std::vector<uint8_t> copy_;
};

// Calls pixel(x, y, fraction of x, fraction of y, out) for every pixel of the result.
template <typename F>
HWY_INLINE void for_each_position(const WarpJob& job, int bits, F&& pixel) {
  const int64_t half = int64_t{1} << (kPositionBits - bits - 1), channels = job.shape.channels;
  const int64_t mask = (int64_t{1} << bits) - 1;
  std::vector<int64_t> steps(static_cast<size_t>(2 * job.width));
  for (int64_t x = 0; x < job.width; ++x) {
    steps[static_cast<size_t>(2 * x)] = fixed_position(job.source[0] * static_cast<double>(x));
    steps[static_cast<size_t>(2 * x + 1)] = fixed_position(job.source[3] * static_cast<double>(x));
  }
  uint8_t* out = job.to;
  for (int64_t y = 0; y < job.height; ++y) {
    const double row = static_cast<double>(y);
    const int64_t x0 = fixed_position(job.source[1] * row + job.source[2]) + half;
    const int64_t y0 = fixed_position(job.source[4] * row + job.source[5]) + half;
    for (int64_t x = 0; x < job.width; ++x, out += channels) {
      const int64_t at_x = (x0 + steps[static_cast<size_t>(2 * x)]) >> (kPositionBits - bits);
      const int64_t at_y = (y0 + steps[static_cast<size_t>(2 * x + 1)]) >> (kPositionBits - bits);
      pixel(at_x >> bits, at_y >> bits, at_x & mask, at_y & mask, out);
    }
  }
}

void warp_nearest(const WarpJob& job) {
  Square<1, 0> square(job);
  const auto channels = static_cast<size_t>(job.shape.channels);
  for_each_position(job, 0, [&](int64_t x, int64_t y, int64_t, int64_t, uint8_t* out) HWY_ATTR {
    square.move_to(x, y);
    std::memcpy(out, square.data, channels);
  });
}

template <int kChannels>
void warp_linear(const WarpJob& job) {
  Square<2, kChannels> square(job);
  const int64_t channels = kChannels > 0 ? kChannels : job.shape.channels;
  for_each_position(job, kFractionBits, [&](int64_t x, int64_t y, int64_t fx, int64_t fy, uint8_t* out) HWY_ATTR {
    square.move_to(x, y);
    const auto right = static_cast<int32_t>(fx), low = static_cast<int32_t>(fy), all = static_cast<int32_t>(kFractions);
    const int32_t left = all - right, high = all - low;
    const uint8_t *upper = square.data, *lower = square.data + square.stride;
    for (int64_t c = 0; c < channels; ++c) {
      const int32_t sum = high * (left * upper[c] + right * upper[c + channels]) +
                          low * (left * lower[c] + right * lower[c + channels]);
      out[c] = static_cast<uint8_t>((sum + all * all / 2) >> (2 * kFractionBits));
    }
  });
}

template <int kTaps, int kChannels>
void warp_filtered(const WarpJob& job) {
  const auto& weights = warp_weights<kTaps>().weight;
  Square<kTaps, kChannels> square(job);
  const int64_t channels = kChannels > 0 ? kChannels : job.shape.channels, size = kTaps * channels;
  std::vector<float> line(static_cast<size_t>(size));
  for_each_position(job, kFractionBits, [&](int64_t x, int64_t y, int64_t fx, int64_t fy, uint8_t* out) HWY_ATTR {
    square.move_to(x + 1 - kTaps / 2, y + 1 - kTaps / 2);
    const auto &down = weights[static_cast<size_t>(fy)], &across = weights[static_cast<size_t>(fx)];
    float fixed[kChannels > 0 ? kTaps * kChannels : 1];
    float* HWY_RESTRICT sums = kChannels > 0 ? fixed : line.data();
    for (int64_t j = 0; j < size; ++j) sums[j] = 0;
    for (int64_t row = 0; row < kTaps; ++row) {
      const uint8_t* pixels = square.data + row * square.stride;
      const float weight = down[static_cast<size_t>(row)];
      for (int64_t j = 0; j < size; ++j) sums[j] += weight * static_cast<float>(pixels[j]);
    }
    for (int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (int64_t k = 0; k < kTaps; ++k) sum += across[static_cast<size_t>(k)] * sums[k * channels + c];
      out[c] = static_cast<uint8_t>(std::lrint(std::clamp(sum, 0.0F, 255.0F)));
    }
  });
}

void warp(const WarpJob& job, Interpolation method) {
  const bool color = job.shape.channels == 3;
  if (method == Interpolation::kNearest) {
    warp_nearest(job);
  } else if (method == Interpolation::kCubic) {
    color ? warp_filtered<4, 3>(job) : warp_filtered<4, 0>(job);
  } else if (method == Interpolation::kLanczos) {
    color ? warp_filtered<8, 3>(job) : warp_filtered<8, 0>(job);
  } else {
    color ? warp_linear<3>(job) : warp_linear<0>(job);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(warp);
}  // namespace
}  // namespace hybridnet::kernels

namespace hybridnet {

void warp_image(const uint8_t* from, const ImageShape& shape, const double (&source)[6], int64_t height, int64_t width,
                Interpolation method, uint8_t fill, uint8_t* to) {
  using namespace kernels;
  HWY_DYNAMIC_DISPATCH(warp)({from, shape, source, height, width, fill, to}, method);
}

}  // namespace hybridnet
#endif
