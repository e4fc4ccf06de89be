// The parameters of the kernels of image.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Colors of one image (pixels, channels), changed in double precision.
struct ColorArguments {
  double* values;
  double* mean;  // mean_luminance writes it, contrast_colors reads it
  int64_t pixels, channels, n;
  double factor, shift[3];
  int32_t rounds;  // 1: to integers, 2: to bytes
  void* out;       // store_colors
};

// Reverses an axis of `size` entries of `inner` elements if *condition is not 0.
struct FlipArguments {
  const void* in;
  void* out;
  const int32_t* condition;
  int64_t n, size, inner;
};

struct NormalizeArguments {
  const void* in;
  void* out;
  int64_t n, pixels, channels;
  const double *mean, *deviation;  // one for each channel
};

// New entry k of an axis is the weighted sum of `count` old ones: index[k * count], ... (ImageTaps).
struct ImageAxis {
  const int64_t* index;
  const double* weight;
  int64_t count, from, to;
};

struct ResizeArguments {
  const void* in;
  void* out;
  int64_t n, batch, channels;
  ImageAxis rows, columns;
};

}  // namespace hybridnet::device
