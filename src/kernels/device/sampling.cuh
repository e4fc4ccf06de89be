// Images resampled by maps of rows and columns, and read at arbitrary points: a thread for each element of the result,
// which adds in the order of the CPU.
#pragma once

#include <cmath>

#include "kernels/device/kernel.cuh"
#include "kernels/device/sampling_arguments.h"
#include "kernels/functors/point_neighbors.h"

namespace hybridnet::device {

// The weighted sum of a column of a plane for element k of the rows' map.
template <class T>
inline __device__ T combined_rows(const AxisMapArguments& rows, int64_t k, const T* column, int64_t width) {
  const int64_t begin = rows.begin[k], end = rows.begin[k + 1];
  if (end - begin == 1 && rows.weight[begin] == 1) return column[rows.index[begin] * width];
  T sum = 0;
  for (int64_t e = begin; e < end; ++e) sum = sum + static_cast<T>(rows.weight[e]) * column[rows.index[e] * width];
  return sum;
}

template <class T>
__device__ void resample(const ResampleArguments& a) {
  const int64_t width = a.columns.from;
  for (int64_t i = first(); i < a.planes * a.rows.to * a.columns.to; i += step()) {
    const int64_t x = i % a.columns.to, y = i / a.columns.to % a.rows.to, plane = i / a.columns.to / a.rows.to;
    const T* from = static_cast<const T*>(a.in) + plane * a.rows.from * width;
    T sum = 0;
    for (int64_t e = a.columns.begin[x]; e < a.columns.begin[x + 1]; ++e) {
      const T row = combined_rows(a.rows, y, from + a.columns.index[e], width);
      const T product = static_cast<T>(a.columns.weight[e]) * row;
      sum = e == a.columns.begin[x] ? product : sum + product;
    }
    T* to = static_cast<T*>(a.out) + i;
    *to = a.accumulate ? *to + sum : sum;
  }
}

// ---- points

// Pixels outside add nothing, even if the first pixel is infinite or NaN.
template <class T>
inline __device__ T share(T weight, T value) {
  return weight == T(0) ? T(0) : weight * value;
}

template <class T>
__device__ void sample_points(const PointArguments& a) {
  for (int64_t i = first(); i < a.batch * a.channels * a.points; i += step()) {
    const int64_t p = i % a.points, plane = i / a.points;
    const T* grid = static_cast<const T*>(a.grid) + plane / a.channels * 2 * a.points;
    const kernels::PointNeighbors<T> x(grid[p], a.width, a.along_x), y(grid[a.points + p], a.height, a.along_y);
    const T* image = static_cast<const T*>(a.image) + plane * a.height * a.width;
    T sum = 0;
    for (int k = 0; k < 4; ++k) {
      const bool inside = y.inside[k / 2] && x.inside[k % 2];
      const T weight = inside ? y.weight[k / 2] * x.weight[k % 2] : T(0);
      const T part = weight == T(0) ? T(0) : share(weight, image[(y.low + k / 2) * a.width + x.low + k % 2]);
      sum = k == 0 ? part : sum + part;
    }
    static_cast<T*>(a.out)[i] = sum;
  }
}

// ---- grids

// The coordinate of element k of n: -1 for the first, 1 for the last; a single element is in the middle.
template <class T>
inline __device__ T grid_coordinate(int64_t k, int64_t n) {
  return n > 1 ? static_cast<T>(-1.0 + static_cast<double>(k) * (2.0 / static_cast<double>(n - 1))) : T(0);
}

// Rows of 2 x 3 matrices act on (x, y, 1).
template <class T>
__device__ void affine_grid(const GridArguments& a) {
  for (int64_t i = first(); i < a.batch * 2 * a.height * a.width; i += step()) {
    const int64_t x = i % a.width, y = i / a.width % a.height;
    const T* m = static_cast<const T*>(a.in) + i / a.width / a.height * 3;
    const T base = m[1] * grid_coordinate<T>(y, a.height) + m[2];
    static_cast<T*>(a.out)[i] = m[0] * grid_coordinate<T>(x, a.width) + base;
  }
}

// Points (3, height * width): rows x, y and 1.
template <class T>
__device__ void fill_grid(const GridArguments& a) {
  const int64_t plane = a.height * a.width;
  for (int64_t i = first(); i < 3 * plane; i += step()) {
    const int64_t row = i / plane, at = i % plane;
    static_cast<T*>(a.out)[i] = row == 0   ? grid_coordinate<T>(at % a.width, a.width)
                                : row == 1 ? grid_coordinate<T>(at / a.width, a.height)
                                           : T(1);
  }
}

// The distance in pixels from -1 to the middle of an axis.
inline __device__ double half_span(int64_t size) { return static_cast<double>(size > 1 ? size - 1 : 1) / 2; }

// Every pixel, displaced.
template <class T>
__device__ void warp_grid(const GridArguments& a) {
  for (int64_t i = first(); i < a.batch * 2 * a.height * a.width; i += step()) {
    const int64_t x = i % a.width, y = i / a.width % a.height;
    const bool is_y = i / a.width / a.height % 2 == 1;
    const T divisor = static_cast<T>(half_span(is_y ? a.height : a.width));
    static_cast<T*>(a.out)[i] = (static_cast<const T*>(a.in)[i] + static_cast<T>(is_y ? y : x)) / divisor - 1;
  }
}

// (2, height, width): the x and y of every pixel.
template <class T>
__device__ void fill_pixels(const GridArguments& a) {
  const int64_t plane = a.height * a.width;
  for (int64_t i = first(); i < 2 * plane; i += step())
    static_cast<T*>(a.out)[i] = static_cast<T>(i < plane ? i % a.width : i % plane / a.width);
}

// ---- the adjoint of sample_points
// A thread for each pixel looks for its points: quadratic in the size of an image, but without atomics.
template <class T>
__device__ void spread_points(const PointArguments& a) {
  const int64_t pixels = a.height * a.width;
  for (int64_t i = first(); i < a.batch * a.channels * pixels; i += step()) {
    const int64_t plane = i / pixels, row = i % pixels / a.width, column = i % a.width;
    const T* grid = static_cast<const T*>(a.grid) + plane / a.channels * 2 * a.points;
    const T* values = static_cast<const T*>(a.image) + plane * a.points;
    T sum = 0;
    for (int64_t p = 0; p < a.points; ++p) {
      const kernels::PointNeighbors<T> x(grid[p], a.width, a.along_x);
      const int64_t right = column - x.low;
      if (right < 0 || right > 1) continue;
      const kernels::PointNeighbors<T> y(grid[a.points + p], a.height, a.along_y);
      const int64_t down = row - y.low;
      if (down < 0 || down > 1 || !x.inside[right] || !y.inside[down]) continue;
      sum = sum + share(static_cast<T>(y.weight[down] * x.weight[right]), values[p]);
    }
    static_cast<T*>(a.out)[i] = sum;
  }
}

}  // namespace hybridnet::device
