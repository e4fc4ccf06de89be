#include "kernels/conv/deformable.h"

#include <algorithm>
#include <cmath>

#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

// Two neighboring positions along one axis, and their weights.
template <typename T>
struct Neighbors {
  int64_t index[2] = {0, 0};
  T weight[2] = {0, 0};
};

template <typename T>
Neighbors<T> neighbors(T position, int64_t size, bool zero_border, bool derivative) {
  Neighbors<T> n;
  const bool inside = zero_border ? position > T(-1) && position < static_cast<T>(size)
                                  : position >= T(0) && position < static_cast<T>(size);
  if (!inside) return n;
  const T below = std::floor(position);
  const int64_t first = static_cast<int64_t>(below);
  const T part = position - below;
  const bool has_first = first >= 0, has_second = first + 1 < size;
  if (!zero_border && !has_second) {  // the last row extends to the edge: constant
    n.index[0] = first;
    n.weight[0] = derivative ? T(0) : T(1);
    return n;
  }
  n.index[0] = has_first ? first : 0;
  n.index[1] = has_second ? first + 1 : 0;
  if (has_first) n.weight[0] = derivative ? T(-1) : T(1) - part;
  if (has_second) n.weight[1] = derivative ? T(1) : part;
  return n;
}

template <typename T>
struct Corners {
  int64_t index[4];
  T weight[4];
};

// The corners of every point of one tap, for one image and one group of channels.
template <typename T>
void find_corners(const DeformableSampling& s, int64_t tap, const T* offset, Corners<T>* corners) {
  const T *move_y = offset + 2 * tap * s.points(), *move_x = move_y + s.points();
  const int64_t tap_y = tap / s.kernel_w * s.dilate_h - s.pad_h, tap_x = tap % s.kernel_w * s.dilate_w - s.pad_w;
  for (int64_t p = 0; p < s.points(); ++p) {
    const int64_t row = p / s.out_width, column = p % s.out_width;
    const Neighbors<T> y =
        neighbors(static_cast<T>(row * s.stride_h + tap_y) + move_y[p], s.height, s.zero_border, s.along_y);
    const Neighbors<T> x =
        neighbors(static_cast<T>(column * s.stride_w + tap_x) + move_x[p], s.width, s.zero_border, s.along_x);
    for (int i = 0; i < 4; ++i) {
      corners[p].index[i] = y.index[i / 2] * s.width + x.index[i % 2];
      corners[p].weight[i] = y.weight[i / 2] * x.weight[i % 2];
    }
  }
}

// Calls f(image plane index, columns plane index, corners) for every channel and tap. The tasks are pairs of an image
// and a group, which own their planes of the image: adding to them needs no locks.
template <typename T, typename F>
void for_each_plane(const DeformableSampling& s, const T* offset, F&& f) {
  const int64_t per_group = s.channels / s.groups;
  parallel_for(s.batch * s.groups, 5.0 * static_cast<double>(s.points() * per_group), [&](int64_t begin, int64_t end) {
    Temporary<Corners<T>> corners(static_cast<size_t>(s.points()));
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / s.groups, group = task % s.groups;
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        find_corners(s, tap, offset + task * s.taps() * 2 * s.points(), corners.data());
        for (int64_t c = group * per_group; c < (group + 1) * per_group; ++c)
          f(n * s.channels + c, (c * s.taps() + tap) * s.batch + n, corners.data());
      }
    }
  });
}

}  // namespace

template <typename T>
void deformable_columns(const DeformableSampling& s, const T* image, const T* offset, T* columns) {
  for_each_plane(s, offset, [&](int64_t from, int64_t to, const Corners<T>* corners) {
    const T* plane = image + from * s.height * s.width;
    T* out = columns + to * s.points();
    for (int64_t p = 0; p < s.points(); ++p) {
      const Corners<T>& c = corners[p];
      out[p] = c.weight[0] * plane[c.index[0]] + c.weight[1] * plane[c.index[1]] + c.weight[2] * plane[c.index[2]] +
               c.weight[3] * plane[c.index[3]];
    }
  });
}

template <typename T>
void deformable_spread(const DeformableSampling& s, const T* columns, const T* offset, T* image) {
  std::fill_n(image, s.batch * s.channels * s.height * s.width, T(0));
  for_each_plane(s, offset, [&](int64_t to, int64_t from, const Corners<T>* corners) {
    T* plane = image + to * s.height * s.width;
    const T* in = columns + from * s.points();
    for (int64_t p = 0; p < s.points(); ++p) {
      for (int i = 0; i < 4; ++i) plane[corners[p].index[i]] += corners[p].weight[i] * in[p];
    }
  });
}

template void deformable_columns(const DeformableSampling&, const float*, const float*, float*);
template void deformable_columns(const DeformableSampling&, const double*, const double*, double*);
template void deformable_spread(const DeformableSampling&, const float*, const float*, float*);
template void deformable_spread(const DeformableSampling&, const double*, const double*, double*);

}  // namespace hybridnet::kernels
