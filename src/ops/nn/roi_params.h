// Limits and functions that operators on regions of interest share.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/checked_size.h"
#include "device/stream.h"
#include "hybridnet/env.h"
#include "hybridnet/op.h"
#include "kernels/index/out_of_range.h"

namespace hybridnet::ops {

inline void check_pooled_size(const Tuple& size) {
  if (size.ndim() != 2 || size[0] <= 0 || size[1] <= 0)
    throw ParamError({.input = "pooled_size", .expected = "a positive height and width", .given = size.str()});
  checked_times(size[0], size[1], "pooled_size");
}

// Maximum number of points along each side of a bin: the limit of the parameter, and the limit for numbers that follow
// from the size of a region, which is data and has no bound. More than a few points per pixel cost time without effect
// on the result.
inline constexpr int32_t kMaxSamplingRatio = 256;
inline constexpr int64_t kMaxPixelsPerBin = 1024;

inline void check_sampling_ratio(const char* name, int32_t ratio) {
  if (ratio <= kMaxSamplingRatio) return;
  throw ParamError({.input = name,
                    .expected = "at most " + std::to_string(kMaxSamplingRatio) + " points along each side of a bin",
                    .given = std::to_string(ratio)});
}

// `pixels`: length of the bin's side, positive or NaN.
template <typename T>
int64_t points_per_side(int32_t sampling_ratio, T pixels) {
  if (sampling_ratio > 0) return sampling_ratio;
  return pixels < static_cast<T>(kMaxPixelsPerBin) ? static_cast<int64_t>(std::ceil(pixels)) : kMaxPixelsPerBin;
}

// Requires data (batch, channels, height, width) and rois (regions, 5).
inline void infer_regions(InferContext& c) {
  const auto require = [&c](int i, int ndim, const char* axes) {
    if (c.in_shape(i).rank_known() && c.in_shape(i).ndim() != ndim)
      throw ShapeError({.input = c.input_name(i), .expected = axes, .given = c.in_shape(i).str()});
    c.set_in_shape(i, Shape::unknown(ndim));
  };
  require(0, 4, "(batch, channels, height, width)");
  require(1, 2, "(regions, 5)");
  c.set_in_shape(1, Shape{kUnknownDim, 5});
}

// The image of a region; -1 if there is no such image.
template <typename T>
int64_t image_of(T number, int64_t batch) {
  return number > T(-1) && number < static_cast<T>(batch) ? static_cast<int64_t>(number) : -1;
}

// Reports the first region whose image does not exist. skips_negative: programs use negative numbers to skip regions,
// so they are not reported.
template <typename T>
void report_images(const char* op, const T* rois, int64_t regions, int64_t batch, bool skips_negative) {
  for (int64_t r = 0; r < regions; ++r) {
    const T number = rois[5 * r];
    if (image_of(number, batch) >= 0 || (skips_negative && number < T(0))) continue;
    if (!kernels::may_report_out_of_range({op, "rois"})) return;
    return kernels::report_out_of_range({op, "rois"}, AttrValue(static_cast<double>(number)).str(), 5 * r,
                                        kernels::Bounds::index(batch), "its region gives 0");
  }
}

// The same for regions in memory of a device, only with HYBRIDNET_STRICT=1: it waits for them.
template <typename T>
void report_device_images(const char* op, const T* rois, int64_t regions, int64_t batch, bool skips_negative) {
  if (!environment().strict || regions == 0) return;
  std::vector<T> copy(static_cast<size_t>(5 * regions));
  device::current()->copy_out(copy.data(), rois, static_cast<int64_t>(copy.size() * sizeof(T)));
  report_images(op, copy.data(), regions, batch, skips_negative);
}

}  // namespace hybridnet::ops
