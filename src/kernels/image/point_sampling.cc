#include "kernels/image/point_sampling.h"

#include <algorithm>
#include <cmath>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/functors/point_neighbors.h"
#include "kernels/image/device_sampling.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

// The four pixels from which each point of one example is read. Pixels outside have weight 0, and the position of the
// first pixel.
template <typename T>
class Taps {
 public:
  explicit Taps(const PointSampling& s)
      : s_(s), places(static_cast<size_t>(4 * s.points())), weights(static_cast<size_t>(4 * s.points())) {}

  void find(const T* grid) {
    const int64_t points = s_.points();
    for (int64_t p = 0; p < points; ++p) {
      const PointNeighbors<T> x(grid[p], s_.width, s_.along_x), y(grid[points + p], s_.height, s_.along_y);
      for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 2; ++i) {
          const bool inside = y.inside[j] && x.inside[i];
          const auto at = static_cast<size_t>(4 * p + 2 * j + i);
          places[at] = inside ? (y.low + j) * s_.width + x.low + i : 0;
          weights[at] = inside ? y.weight[j] * x.weight[i] : T(0);
        }
    }
  }

 private:
  const PointSampling& s_;

 public:
  Temporary<int64_t> places;
  Temporary<T> weights;
};

// Pixels outside add nothing, even if the first pixel is infinite or NaN.
template <typename T>
T share(T weight, T value) {
  return weight == T(0) ? T(0) : weight * value;
}

// Calls f(plane, taps of its example) for the planes of the batch, each on one thread.
template <typename T, typename F>
void for_planes(const PointSampling& s, const T* grid, const F& f) {
  const int64_t work = 1 + 8 * s.points() + s.image();
  parallel_for(s.batch * s.channels, 0.3 * static_cast<double>(work), [&](int64_t begin, int64_t end) {
    Taps<T> taps(s);
    int64_t example = -1;
    for (int64_t plane = begin; plane < end; ++plane) {
      if (plane / s.channels != example) {
        example = plane / s.channels;
        taps.find(grid + example * 2 * s.points());
      }
      f(plane, taps);
    }
  });
}

}  // namespace

template <typename T>
void sample_points(const PointSampling& s, const T* image, const T* grid, T* out) {
  if (device::current()) return on_device::sample_points(s, image, grid, out);
  if (s.image() == 0) {  // all points are outside
    std::fill_n(out, s.batch * s.channels * s.points(), T(0));
    return;
  }
  for_planes(s, grid, [&](int64_t plane, const Taps<T>& taps) {
    const T* from = image + plane * s.image();
    T* to = out + plane * s.points();
    const int64_t* at = taps.places.data();
    const T* w = taps.weights.data();
    for (int64_t p = 0; p < s.points(); ++p, at += 4, w += 4)
      to[p] = share(w[0], from[at[0]]) + share(w[1], from[at[1]]) + share(w[2], from[at[2]]) + share(w[3], from[at[3]]);
  });
}

// Each plane is written by one thread, so that every pixel is summed in the order of the points.
template <typename T>
void spread_points(const PointSampling& s, const T* values, const T* grid, T* image) {
  if (device::current()) return on_device::spread_points(s, values, grid, image);
  if (s.image() == 0) return;
  for_planes(s, grid, [&](int64_t plane, const Taps<T>& taps) {
    const T* from = values + plane * s.points();
    T* to = image + plane * s.image();
    const int64_t* at = taps.places.data();
    const T* w = taps.weights.data();
    std::fill_n(to, s.image(), T(0));
    for (int64_t p = 0; p < s.points(); ++p, at += 4, w += 4)
      for (int k = 0; k < 4; ++k) to[at[k]] += share(w[k], from[p]);
  });
}

template void sample_points(const PointSampling&, const float*, const float*, float*);
template void sample_points(const PointSampling&, const double*, const double*, double*);
template void spread_points(const PointSampling&, const float*, const float*, float*);
template void spread_points(const PointSampling&, const double*, const double*, double*);

}  // namespace hybridnet::kernels
