// The parameters of the kernels of sampling.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Element k of an axis is the weighted sum of entries begin[k] to begin[k + 1].
struct AxisMapArguments {
  const int64_t *begin, *index;
  const double* weight;
  int64_t from, to;
};

struct ResampleArguments {
  const void* in;
  void* out;
  AxisMapArguments rows, columns;
  int64_t planes;
  int32_t accumulate;
};

// PointSampling of kernels/image/point_sampling.h.
struct PointArguments {
  const void *image, *grid;  // image: of spread_points, the values of the points
  void* out;
  int64_t batch, channels, height, width, points;
  int32_t along_x, along_y;
};

// Grids of points (batch, 2, height, width) from 2 x 3 matrices or displacements; fixed grids have no input.
struct GridArguments {
  const void* in;
  void* out;
  int64_t batch, height, width;
};

}  // namespace hybridnet::device
