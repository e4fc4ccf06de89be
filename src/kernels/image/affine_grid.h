// The regular grid of points on which affine transformations act.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "kernels/image/device_sampling.h"

namespace hybridnet::kernels {

// The coordinate of element k of n: -1 for the first, 1 for the last; a single element is in the middle.
template <typename T>
T grid_coordinate(int64_t k, int64_t n) {
  return n > 1 ? static_cast<T>(-1.0 + static_cast<double>(k) * (2.0 / static_cast<double>(n - 1))) : T(0);
}

// Fills points (3, height * width) with rows x, y and 1.
template <typename T>
void fill_grid(int64_t height, int64_t width, T* points) {
  if (device::current()) return on_device::make_grid<T>("fill_grid", 1, height, width, nullptr, points);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t at = y * width + x;
      points[at] = grid_coordinate<T>(x, width);
      points[height * width + at] = grid_coordinate<T>(y, height);
      points[2 * height * width + at] = T(1);
    }
  }
}

// Computes grid (batch, 2, height, width) from affine (batch, 6): rows of a 2 x 3 matrix that acts on (x, y, 1).
template <typename T>
void affine_grid(int64_t batch, int64_t height, int64_t width, const T* affine, T* grid) {
  if (device::current()) return on_device::make_grid("affine_grid", batch, height, width, affine, grid);
  for (int64_t row = 0; row < 2 * batch; ++row) {
    const T* m = affine + row * 3;
    for (int64_t y = 0; y < height; ++y) {
      const T base = m[1] * grid_coordinate<T>(y, height) + m[2];
      for (int64_t x = 0; x < width; ++x)
        grid[(row * height + y) * width + x] = m[0] * grid_coordinate<T>(x, width) + base;
    }
  }
}

}  // namespace hybridnet::kernels
