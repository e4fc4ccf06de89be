// Convolutions of images with one to three spatial axes, and their two gradients, as matrix products whose second
// operand is read from the image directly: no columns are stored, and nothing is added by two threads. Tiles as in
// product.cuh. Groups of few channels, whose tiles would be almost empty, take a thread per output or a block per
// weight.
// Index: uint32_t if all positions and depths fit, for division of 64-bit numbers is slow.
#pragma once

#include <cmath>

#include "kernels/device/convolution_arguments.h"
#include "kernels/device/product.cuh"

namespace hybridnet::device {

enum class ConvForm { kForward, kDataGradient, kWeights };

// A point of an image as the windows see it, and an element of a window: the image is read at `at` of both.
struct ConvPoint {
  int64_t offset;
  int64_t at[3];
};

// Point i of (image, point). kDataGradient: the place that a tap is subtracted from, before it is divided by stride.
template <class Index, ConvForm kForm>
inline __device__ ConvPoint conv_point(const ConvArguments& a, int64_t i) {
  const Index image = static_cast<Index>(i) / static_cast<Index>(a.point_count);
  Index rest = static_cast<Index>(i) - image * static_cast<Index>(a.point_count);
  ConvPoint p;
  p.offset = static_cast<int64_t>(image) * a.image_n;
  for (int axis = 2; axis >= 0; --axis) {
    const Index size = static_cast<Index>(a.points[axis]), quotient = rest / size;
    const int64_t at = static_cast<int64_t>(rest - quotient * size);
    p.at[axis] = kForm == ConvForm::kDataGradient ? at + a.pad[axis] : at * a.stride[axis] - a.pad[axis];
    rest = quotient;
  }
  return p;
}

// Element i of (channel, tap).
template <class Index>
inline __device__ ConvPoint conv_tap(const ConvArguments& a, int64_t i) {
  const Index inner = static_cast<Index>(a.taps_first ? a.channels : a.taps);
  const Index outer = static_cast<Index>(i) / inner, rest = static_cast<Index>(i) - outer * inner;
  Index tap = a.taps_first ? outer : rest;
  ConvPoint p;
  p.offset = static_cast<int64_t>(a.taps_first ? rest : outer) * a.image_c;
  for (int axis = 2; axis >= 0; --axis) {
    const Index size = static_cast<Index>(a.kernel[axis]), quotient = tap / size;
    p.at[axis] = static_cast<int64_t>(tap - quotient * size) * a.dilate[axis];
    tap = quotient;
  }
  return p;
}

// The element of the image that a tap of the window at a point reads; 0 outside of the image.
template <class T, class Index, ConvForm kForm>
inline __device__ T conv_value(const ConvArguments& a, const T* image, const ConvPoint& point, const ConvPoint& tap) {
  int64_t pixel = 0;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t at;
    if constexpr (kForm == ConvForm::kDataGradient) {
      at = point.at[axis] - tap.at[axis];
      if (at < 0) return T(0);
      if (a.stride[axis] != 1) {
        const Index quotient = static_cast<Index>(at) / static_cast<Index>(a.stride[axis]);
        if (static_cast<int64_t>(quotient) * a.stride[axis] != at) return T(0);
        at = static_cast<int64_t>(quotient);
      }
    } else {
      at = point.at[axis] + tap.at[axis];
      if (at < 0) return T(0);
    }
    if (at >= a.source[axis]) return T(0);
    pixel = pixel * a.source[axis] + at;
  }
  return image[point.offset + tap.offset + pixel * a.image_inner];
}

// The place of element (0, depth) of a group's factor.
template <class Index>
inline __device__ int64_t conv_factor(const ConvArguments& a, int64_t group, int64_t depth) {
  const Index size = static_cast<Index>(a.factor_inner_size), outer = static_cast<Index>(depth) / size;
  return group * a.factor_group + static_cast<int64_t>(outer) * a.factor_outer +
         static_cast<int64_t>(static_cast<Index>(depth) - outer * size) * a.factor_inner;
}

// Stores a sum of a product whose columns are points.
template <class T, class Index>
inline __device__ void store_conv_point(const ConvArguments& a, int64_t group, int64_t row, int64_t column, T sum) {
  const Index image = static_cast<Index>(column) / static_cast<Index>(a.point_count);
  const int64_t point = column - static_cast<int64_t>(image) * a.point_count, channel = group * a.rows + row;
  const int64_t to = static_cast<int64_t>(image) * a.out_n + channel * a.out_c + point * a.out_inner;
  if (a.bias) sum += static_cast<const T*>(a.bias)[channel];
  if (a.addend) sum += static_cast<const T*>(a.addend)[to];
  static_cast<T*>(a.out)[to] = sum;
}

// ---- tiles

struct ConvTile {
  int64_t group, split, top, left;
};

template <class T, class Index, class Room>
inline __device__ void load_factor(const ConvArguments& a, const ConvTile& t, int64_t depth, int64_t end, Room& room) {
  const int x = static_cast<int>(threadIdx.x) % kProductDepth;
  const bool inside = depth + x < end;
  const T* from = static_cast<const T*>(a.factor) + (inside ? conv_factor<Index>(a, t.group, depth + x) : 0);
  for (int i = static_cast<int>(threadIdx.x) / kProductDepth; i < kProductTile; i += 256 / kProductDepth)
    room[x * kProductRow + i] = inside && t.top + i < a.rows ? from[(t.top + i) * a.factor_row] : T(0);
}

// The windows of a tile; each thread keeps what it needs of the columns, which are the same at every depth.
template <class T, class Index, ConvForm kForm>
class ConvWindows {
 public:
  __device__ ConvWindows(const ConvArguments& a, const ConvTile& t)
      : image_(static_cast<const T*>(a.image) + t.group * a.channels * a.image_c) {
    for (int r = 0; r < kKept; ++r) {
      const int64_t column = t.left + column_of(r);
      inside_[r] = column < a.columns;
      if (!inside_[r]) continue;
      if constexpr (kForm == ConvForm::kWeights)
        kept_[r] = conv_tap<Index>(a, column);
      else
        kept_[r] = conv_point<Index, kForm>(a, column);
    }
  }
  template <class Room>
  __device__ void load(const ConvArguments& a, int64_t depth, int64_t end, Room& room) const {
    constexpr int kOffset = kProductDepth * kProductRow;
    if constexpr (kForm == ConvForm::kWeights) {
      const int x = static_cast<int>(threadIdx.x) % kProductDepth;
      const bool inside = depth + x < end;
      ConvPoint point{};
      if (inside) point = conv_point<Index, kForm>(a, depth + x);
      for (int r = 0; r < kKept; ++r)
        room[kOffset + x * kProductRow + column_of(r)] =
            inside && inside_[r] ? conv_value<T, Index, kForm>(a, image_, point, kept_[r]) : T(0);
    } else {
      for (int x = static_cast<int>(threadIdx.x) / kProductTile; x < kProductDepth; x += 256 / kProductTile)
        room[kOffset + x * kProductRow + column_of(0)] =
            inside_[0] && depth + x < end
                ? conv_value<T, Index, kForm>(a, image_, kept_[0], conv_tap<Index>(a, depth + x))
                : T(0);
    }
  }

 private:
  // Neighboring threads read neighboring points.
  static constexpr int kKept = kForm == ConvForm::kWeights ? kProductTile * kProductDepth / 256 : 1;
  static __device__ int column_of(int r) {
    const int thread = static_cast<int>(threadIdx.x);
    return kForm == ConvForm::kWeights ? thread / kProductDepth + r * (256 / kProductDepth) : thread % kProductTile;
  }
  const T* image_;
  ConvPoint kept_[kKept];
  bool inside_[kKept];
};

template <class T, class Index, ConvForm kForm, class Room>
inline __device__ void convolve_tile(const ConvArguments& a, const ConvTile& t, Room& room) {
  constexpr int kOffset = kProductDepth * kProductRow;
  const int row = static_cast<int>(threadIdx.x) / 16 * kProductEach,
            column = static_cast<int>(threadIdx.x) % 16 * kProductEach;
  const ConvWindows<T, Index, kForm> windows(a, t);
  T sum[kProductEach][kProductEach] = {};
  const int64_t begin = t.split * a.split_depth;
  const int64_t end = begin + a.split_depth < a.depth ? begin + a.split_depth : a.depth;
  for (int64_t depth = begin; depth < end; depth += kProductDepth) {
    load_factor<T, Index>(a, t, depth, end, room);
    windows.load(a, depth, end, room);
    __syncthreads();
    for (int x = 0; x < kProductDepth; ++x) {
      T left[kProductEach], right[kProductEach];
      for (int i = 0; i < kProductEach; ++i) {
        left[i] = room[x * kProductRow + row + i];
        right[i] = room[kOffset + x * kProductRow + column + i];
      }
      for (int i = 0; i < kProductEach; ++i)
        for (int j = 0; j < kProductEach; ++j) sum[i][j] = std::fma(left[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }
  for (int i = 0; i < kProductEach; ++i)
    for (int j = 0; j < kProductEach; ++j) {
      const int64_t r = t.top + row + i, c = t.left + column + j;
      if (r >= a.rows || c >= a.columns) continue;
      if constexpr (kForm == ConvForm::kWeights)
        static_cast<T*>(a.out)[((t.split * a.groups + t.group) * a.rows + r) * a.columns + c] = sum[i][j];
      else
        store_conv_point<T, Index>(a, t.group, r, c, sum[i][j]);
    }
}

template <class T, class Index, ConvForm kForm, class Room>
__device__ void convolve(const ConvArguments& a, Room& room) {
  const int64_t tiles = a.tiles_down * a.tiles_across;
  for (int64_t i = blockIdx.x; i < a.splits * a.groups * tiles; i += gridDim.x) {
    const int64_t product = i / tiles, tile = i % tiles;
    const ConvTile t{product % a.groups, product / a.groups, tile / a.tiles_across * kProductTile,
                     tile % a.tiles_across * kProductTile};
    convolve_tile<T, Index, kForm>(a, t, room);
  }
}

// out = the sum of the parts, in order.
template <class T>
__device__ void join_conv_parts(const JoinArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    double sum = 0;
    for (int64_t split = 0; split < a.splits; ++split)
      sum += static_cast<double>(static_cast<const T*>(a.parts)[split * a.n + i]);
    static_cast<T*>(a.out)[i] = static_cast<T>(sum);
  }
}

// ---- groups of few channels

// A thread for each output.
template <class T, class Index, ConvForm kForm>
__device__ void convolve_direct(const ConvArguments& a) {
  const int64_t all_rows = a.groups * a.rows, images = a.columns / a.point_count;
  for (int64_t i = first(); i < images * all_rows * a.point_count; i += step()) {
    const int64_t place = i / a.point_count, channel = place % all_rows, group = channel / a.rows;
    const int64_t column = place / all_rows * a.point_count + i % a.point_count, row = channel % a.rows;
    const T* image = static_cast<const T*>(a.image) + group * a.channels * a.image_c;
    const T* factor = static_cast<const T*>(a.factor) + row * a.factor_row;
    const ConvPoint point = conv_point<Index, kForm>(a, column);
    T sum = 0;
    for (int64_t k = 0; k < a.depth; ++k)
      sum = std::fma(factor[conv_factor<Index>(a, group, k)],
                     conv_value<T, Index, kForm>(a, image, point, conv_tap<Index>(a, k)), sum);
    store_conv_point<T, Index>(a, group, row, column, sum);
  }
}

// A block of 256 threads for each weight.
template <class T, class Index, class Room>
__device__ void convolve_weights_direct(const ConvArguments& a, Room& room) {
  constexpr ConvForm kForm = ConvForm::kWeights;
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t weight = blockIdx.x; weight < a.groups * a.rows * a.columns; weight += gridDim.x) {
    const int64_t filter = weight / a.columns, group = filter / a.rows;
    const T* image = static_cast<const T*>(a.image) + group * a.channels * a.image_c;
    const T* factor = static_cast<const T*>(a.factor) + filter % a.rows * a.factor_row;
    const ConvPoint tap = conv_tap<Index>(a, weight % a.columns);
    T sum = 0;
    for (int64_t k = thread; k < a.depth; k += 256)
      sum = std::fma(factor[conv_factor<Index>(a, group, k)],
                     conv_value<T, Index, kForm>(a, image, conv_point<Index, kForm>(a, k), tap), sum);
    room[thread] = sum;
    for (int width = 128; width > 0; width /= 2) {
      __syncthreads();
      if (thread < width) room[thread] = room[thread] + room[thread + width];
    }
    if (thread == 0) static_cast<T*>(a.out)[weight] = room[0];
    __syncthreads();
  }
}

}  // namespace hybridnet::device
