// Regions of interest: ROIPooling and ROIAlign (ops/nn/roi_pooling.cc, roi_align.cc). A thread for each element of the
// result.
#pragma once

#include <cmath>

#include "kernels/device/elements.cuh"
#include "kernels/device/roi_arguments.h"

namespace hybridnet::device {

// The image of a region; -1 if there is no such image.
template <class T>
inline __device__ int64_t image_of(T number, int64_t batch) {
  return number > T(-1) && number < static_cast<T>(batch) ? static_cast<int64_t>(number) : -1;
}

// ---- ROIPooling

// Rounds halves away from zero, as std::round does.
inline __device__ int64_t rounded(double x) {
  if (!(x > -1e9 && x < 1e9)) return 0;
  const int64_t whole = static_cast<int64_t>(x);
  const double rest = x - static_cast<double>(whole);
  return rest >= 0.5 ? whole + 1 : rest <= -0.5 ? whole - 1 : whole;
}

// The pixels [first(k), last(k)) of window k along an axis.
template <class T>
struct PoolAxis {
  int64_t start, size;
  T bin;
  __device__ PoolAxis(double low, double high, int64_t axis_size, int64_t count)
      : start(rounded(low)), size(axis_size) {
    const int64_t length = rounded(high) - start + 1;
    bin = static_cast<T>(length > 1 ? length : 1) / static_cast<T>(count);
  }
  __device__ int64_t first(int64_t k) const { return inside(std::floor(static_cast<T>(k) * bin)); }
  __device__ int64_t last(int64_t k) const { return inside(std::ceil(static_cast<T>(k + 1) * bin)); }
  __device__ int64_t inside(T at) const {
    const int64_t pixel = static_cast<int64_t>(at) + start;
    return pixel < 0 ? 0 : pixel > size ? size : pixel;
  }
};

template <class T>
__device__ void roi_pooling(const RoiArguments& a) {
  const T* data = static_cast<const T*>(a.data);
  for (int64_t i = device::first(); i < a.regions * a.channels * a.pooled_height * a.pooled_width;
       i += step()) {
    const int64_t column = i % a.pooled_width, row = i / a.pooled_width % a.pooled_height;
    const int64_t plane = i / a.pooled_width / a.pooled_height;
    const T* roi = static_cast<const T*>(a.rois) + plane / a.channels * 5;
    const PoolAxis<T> x(static_cast<double>(roi[1]) * a.scale, static_cast<double>(roi[3]) * a.scale, a.width,
                        a.pooled_width);
    const PoolAxis<T> y(static_cast<double>(roi[2]) * a.scale, static_cast<double>(roi[4]) * a.scale, a.height,
                        a.pooled_height);
    const int64_t image = image_of(roi[0], a.batch);
    int64_t place = -1;
    for (int64_t h = y.first(row); image >= 0 && h < y.last(row); ++h)
      for (int64_t w = x.first(column); w < x.last(column); ++w) {
        const int64_t at = ((image * a.channels + plane % a.channels) * a.height + h) * a.width + w;
        // The first NaN counts as larger than all other values.
        if (place < 0 || data[at] > data[place] || (data[at] != data[at] && data[place] == data[place])) place = at;
      }
    static_cast<T*>(a.out)[i] = place < 0 ? T(0) : data[place];
    a.places[i] = place;
  }
}

// out = the values at places; 0 for places outside.
template <class T>
__device__ void gather_places(const PlaceArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t place = a.places[i];
    static_cast<T*>(a.out)[i] = place >= 0 && place < a.size ? static_cast<const T*>(a.values)[place] : T(0);
  }
}

// ---- ROIAlign

// The points of a region along an axis.
template <class T>
struct AlignAxis {
  T start = 0, bin = 0;
  int64_t count = 0, size;

  __device__ AlignAxis(const RoiArguments& a, T low, T high, int64_t axis_size, int64_t windows) : size(axis_size) {
    constexpr int64_t kMaxPixelsPerBin = 1024;
    const T scale = static_cast<T>(a.scale), shift = a.aligned ? T(0.5) : T(0);
    start = low * scale - shift;
    const T end = high * scale - shift;
    const T length = a.aligned ? end - start : end - start < T(1) ? T(1) : end - start;
    bin = length / static_cast<T>(windows);
    if (!(std::abs(start) < T(1e9)) || !(length > T(0)) || !(length < T(1e6))) return;  // invalid: reads no pixel
    count = a.sample_ratio > 0                         ? a.sample_ratio
            : bin < static_cast<T>(kMaxPixelsPerBin) ? static_cast<int64_t>(std::ceil(bin))
                                                       : kMaxPixelsPerBin;
  }
  // Point i of window k lies between pixels low and high. A point more than a pixel outside counts as 0.
  __device__ void find(int64_t k, int64_t i, int64_t* low, int64_t* high, T* low_weight, T* high_weight) const {
    T at = start + static_cast<T>(k) * bin + (static_cast<T>(i) + T(0.5)) * bin / static_cast<T>(count);
    *low = *high = 0;
    *low_weight = *high_weight = T(0);
    if (!(at >= T(-1) && at <= static_cast<T>(size)) || size == 0) return;
    at = at < T(0) ? T(0) : at;
    *low = static_cast<int64_t>(at);
    if (*low >= size - 1) {
      *low = *high = size - 1;
      *low_weight = T(1);
      return;
    }
    *high = *low + 1;
    *low_weight = 1 - (at - static_cast<T>(*low));
    *high_weight = at - static_cast<T>(*low);
  }
  // The weight of a pixel in window k.
  __device__ T weight_of(int64_t k, int64_t pixel) const {
    T sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t low, high;
      T low_weight, high_weight;
      find(k, i, &low, &high, &low_weight, &high_weight);
      if (low == pixel) sum = sum + low_weight;
      if (high == pixel) sum = sum + high_weight;
    }
    return sum;
  }
};

template <class T>
inline __device__ T points_share(const AlignAxis<T>& x, const AlignAxis<T>& y) {
  const int64_t count = x.count * y.count;
  return T(1) / static_cast<T>(count > 1 ? count : 1);
}

template <class T>
__device__ void roi_align(const RoiArguments& a) {
  const int64_t bins = a.pooled_height * a.pooled_width;
  for (int64_t i = first(); i < a.regions * a.out_channels * bins; i += step()) {
    const int64_t window = i % bins, c = i / bins % a.out_channels;
    const T* roi = static_cast<const T*>(a.rois) + i / bins / a.out_channels * 5;
    const int64_t image = a.height * a.width == 0 ? -1 : image_of(roi[0], a.batch);
    T sum = 0;
    if (image >= 0) {
      const AlignAxis<T> x(a, roi[1], roi[3], a.width, a.pooled_width), y(a, roi[2], roi[4], a.height, a.pooled_height);
      const T share = points_share(x, y);
      const int64_t channel = a.position_sensitive ? c * bins + window : c;
      const T* from = static_cast<const T*>(a.data) + (image * a.channels + channel) * a.height * a.width;
      for (int64_t p = 0; p < y.count; ++p) {
        int64_t top, bottom;
        T top_weight, bottom_weight;
        y.find(window / a.pooled_width, p, &top, &bottom, &top_weight, &bottom_weight);
        for (int64_t q = 0; q < x.count; ++q) {
          int64_t left, right;
          T left_weight, right_weight;
          x.find(window % a.pooled_width, q, &left, &right, &left_weight, &right_weight);
          sum = sum + share * top_weight * left_weight * from[top * a.width + left];
          sum = sum + share * top_weight * right_weight * from[top * a.width + right];
          sum = sum + share * bottom_weight * left_weight * from[bottom * a.width + left];
          sum = sum + share * bottom_weight * right_weight * from[bottom * a.width + right];
        }
      }
    }
    static_cast<T*>(a.out)[i] = sum;
  }
}

// The gradient of a pixel: what its windows read of it. The weights of a window are a product of those along both axes.
template <class T>
inline __device__ T roi_pixel_gradient(const RoiArguments& a, const T* roi, const T* values, int64_t first_window,
                                       int64_t windows, int64_t row, int64_t column) {
  const AlignAxis<T> x(a, roi[1], roi[3], a.width, a.pooled_width), y(a, roi[2], roi[4], a.height, a.pooled_height);
  const T share = points_share(x, y);
  T sum = 0, down = 0;
  int64_t weighed = -1;
  for (int64_t w = first_window; w < first_window + windows; ++w) {
    if (w / a.pooled_width != weighed) {
      weighed = w / a.pooled_width;
      down = y.weight_of(weighed, row);
    }
    if (down == T(0)) continue;
    const T across = x.weight_of(w % a.pooled_width, column);
    if (across != T(0)) sum = sum + share * down * across * values[w - first_window];
  }
  return sum;
}

template <class T>
__device__ void roi_align_gradient(const RoiArguments& a) {
  const int64_t bins = a.pooled_height * a.pooled_width, plane = a.height * a.width;
  for (int64_t i = first(); i < a.batch * a.channels * plane; i += step()) {
    const int64_t column = i % a.width, row = i / a.width % a.height, channel = i / plane % a.channels;
    const int64_t image = i / plane / a.channels, c = a.position_sensitive ? channel / bins : channel;
    const int64_t first_window = a.position_sensitive ? channel % bins : 0;
    T sum = 0;
    for (int64_t r = 0; r < a.regions; ++r) {
      const T* roi = static_cast<const T*>(a.rois) + 5 * r;
      if (image_of(roi[0], a.batch) != image) continue;
      const T* values = static_cast<const T*>(a.data) + (r * a.out_channels + c) * bins + first_window;
      sum = sum + roi_pixel_gradient(a, roi, values, first_window, a.position_sensitive ? 1 : bins, row, column);
    }
    static_cast<T*>(a.out)[i] = sum;
  }
}

}  // namespace hybridnet::device
