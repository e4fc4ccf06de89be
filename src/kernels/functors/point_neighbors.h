// Bilinear interpolation along one axis of an image: shared by the CPU and devices, so that both have the same bits.
#pragma once

#include <cmath>
#include <cstdint>

namespace hybridnet::kernels {

// Two neighbors along an axis, their weights, and flags for those inside the image. Coordinates are in [-1, 1] across
// the image; slope: the weights are derivatives by the coordinate.
template <class T>
struct PointNeighbors {
  int64_t low = -2;
  T weight[2] = {0, 0};
  bool inside[2] = {false, false};

  PointNeighbors(T coordinate, int64_t size, bool slope) {
    const T half = static_cast<T>(size - 1) / 2;
    const T at = (coordinate + 1) * half;
    if (!(at > T(-1) && at < static_cast<T>(size))) return;  // also NaN
    const T floor = std::floor(at);
    low = static_cast<int64_t>(floor);
    const T part = at - floor;
    weight[0] = slope ? -half : 1 - part;
    weight[1] = slope ? half : part;
    inside[0] = low >= 0;
    inside[1] = low + 1 < size;
  }
};

}  // namespace hybridnet::kernels
