// The parameters of the kernels of boxes.cuh, for the host and for the device.
#pragma once

#include <cstdint>

#include "kernels/functors/boxes.h"

namespace hybridnet::device {

struct OverlapArguments {
  const void *left, *right;
  void* out;
  int64_t rows, columns;
  kernels::BoxFormat format;
};

struct DecodeArguments {
  const void *in, *anchors;
  void* out;
  int64_t count, boxes;
  double factor[4], clip;
  kernels::BoxFormat format;
};

struct EncodeArguments {
  const void* samples;
  const int64_t* matches;
  const void *anchors, *references, *means, *deviations;
  void *targets, *masks;
  uint8_t* wrong;  // for each box: 1 if its match is out of range
  int64_t count, boxes, reference_count;
};

struct HalfSize {
  double w, h;
};

struct PriorArguments {
  const HalfSize* half;
  void* out;
  int64_t pixels, width, per_pixel;
  double offset_y, offset_x, step_y, step_x;
  int32_t clip;
};

}  // namespace hybridnet::device
