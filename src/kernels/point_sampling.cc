#include "kernels/point_sampling.h"

#include <algorithm>
#include <cmath>

#include "hybridnet/threads.h"

namespace hybridnet::kernels {
namespace {

// Two neighbours along an axis, their weights, and whether they lie inside.
template <typename T>
struct Neighbours {
  int64_t low = -2;
  T weight[2] = {0, 0};
  bool inside[2] = {false, false};

  Neighbours(T coordinate, int64_t size, bool slope) {
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

// f(offset in the plane, weight) for the pixels that a point is read from.
template <typename T, typename F>
void for_pixels(const PointSampling& s, const T* grid, int64_t point, const F& f) {
  const Neighbours<T> x(grid[point], s.width, s.along_x), y(grid[s.points() + point], s.height, s.along_y);
  for (int j = 0; j < 2; ++j)
    for (int i = 0; i < 2; ++i)
      if (y.inside[j] && x.inside[i]) f((y.low + j) * s.width + x.low + i, y.weight[j] * x.weight[i]);
}

}  // namespace

template <typename T>
void sample_points(const PointSampling& s, const T* image, const T* grid, T* out) {
  const int64_t points = s.points();
  parallel_for(s.batch * points, 1 + 2048 / std::max<int64_t>(s.channels, 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / points, point = i % points;
      const T* plane = image + n * s.channels * s.image();
      T* to = out + n * s.channels * points + point;
      for (int64_t c = 0; c < s.channels; ++c) to[c * points] = 0;
      for_pixels(s, grid + n * 2 * points, point, [&](int64_t offset, T weight) {
        for (int64_t c = 0; c < s.channels; ++c) to[c * points] += weight * plane[c * s.image() + offset];
      });
    }
  });
}

// One plane belongs to one thread, so that every pixel is summed in the order of the points.
template <typename T>
void spread_points(const PointSampling& s, const T* values, const T* grid, T* image) {
  const int64_t points = s.points();
  parallel_for(s.batch * s.channels, 1 + 2048 / std::max<int64_t>(points, 1), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      T* plane = image + p * s.image();
      const T *value = values + p * points, *at = grid + p / s.channels * 2 * points;
      std::fill_n(plane, s.image(), T(0));
      for (int64_t point = 0; point < points; ++point)
        for_pixels(s, at, point, [&](int64_t offset, T weight) { plane[offset] += weight * value[point]; });
    }
  });
}

template void sample_points(const PointSampling&, const float*, const float*, float*);
template void sample_points(const PointSampling&, const double*, const double*, double*);
template void spread_points(const PointSampling&, const float*, const float*, float*);
template void spread_points(const PointSampling&, const double*, const double*, double*);

}  // namespace hybridnet::kernels
