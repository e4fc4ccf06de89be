// Boxes: overlaps, offsets from anchors, anchors. A thread for each box or pair of boxes.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/box_arguments.h"

namespace hybridnet::device {

template <class T>
__device__ inline void overlaps(const OverlapArguments& a) {
  using Box = kernels::Box<accumulator_t<T>>;
  for (int64_t i = first(); i < a.rows * a.columns; i += step()) {
    const Box left = Box::load(static_cast<const T*>(a.left) + i / a.columns * 4, a.format);
    const Box right = Box::load(static_cast<const T*>(a.right) + i % a.columns * 4, a.format);
    static_cast<T*>(a.out)[i] = convert<T>(kernels::overlap(left, right));
  }
}

template <class T>
__device__ inline void decode_boxes(const DecodeArguments& a) {
  using A = accumulator_t<T>;
  for (int64_t i = first(); i < a.count; i += step()) {
    const T* const x = static_cast<const T*>(a.in) + 4 * i;
    T* const out = static_cast<T*>(a.out) + 4 * i;
    const auto anchor = kernels::Extent<A>::load(static_cast<const T*>(a.anchors) + i % a.boxes * 4, a.format);
    const A cx = convert<A>(x[0]) * static_cast<A>(a.factor[0]) * anchor.w + anchor.x;
    const A cy = convert<A>(x[1]) * static_cast<A>(a.factor[1]) * anchor.h + anchor.y;
    A log_w = convert<A>(x[2]) * static_cast<A>(a.factor[2]), log_h = convert<A>(x[3]) * static_cast<A>(a.factor[3]);
    if (a.clip > 0) {
      const A bound = static_cast<A>(a.clip);
      log_w = bound < log_w ? bound : log_w;
      log_h = bound < log_h ? bound : log_h;
    }
    const A half_w = std::exp(log_w) * anchor.w / 2, half_h = std::exp(log_h) * anchor.h / 2;
    out[0] = convert<T>(cx - half_w);
    out[1] = convert<T>(cy - half_h);
    out[2] = convert<T>(cx + half_w);
    out[3] = convert<T>(cy + half_h);
  }
}

template <class T>
__device__ inline void encode_boxes(const EncodeArguments& a) {
  using A = accumulator_t<T>;
  using Extent = kernels::Extent<A>;
  for (int64_t i = first(); i < a.count; i += step()) {
    const bool is_positive = convert<A>(static_cast<const T*>(a.samples)[i]) > A(0.5);
    const int64_t match = a.matches[i];
    const bool wrong = is_positive && (match < 0 || match >= a.reference_count);
    a.wrong[i] = wrong ? 1 : 0;
    T *const targets = static_cast<T*>(a.targets) + 4 * i, *const masks = static_cast<T*>(a.masks) + 4 * i;
    A encoded[4] = {0, 0, 0, 0};
    if (is_positive && !wrong) {
      const T* const from = static_cast<const T*>(a.references) + 4 * (i / a.boxes * a.reference_count + match);
      const Extent anchor = Extent::load(static_cast<const T*>(a.anchors) + 4 * i, kernels::BoxFormat::kCorner);
      const Extent r = Extent::load(from, kernels::BoxFormat::kCorner);
      encoded[0] = (r.x - anchor.x) / anchor.w;
      encoded[1] = (r.y - anchor.y) / anchor.h;
      encoded[2] = std::log(r.w / anchor.w);
      encoded[3] = std::log(r.h / anchor.h);
      for (int k = 0; k < 4; ++k)
        encoded[k] = (encoded[k] - convert<A>(static_cast<const T*>(a.means)[k])) /
                     convert<A>(static_cast<const T*>(a.deviations)[k]);
    }
    for (int k = 0; k < 4; ++k) {
      targets[k] = convert<T>(encoded[k]);
      masks[k] = convert<T>(is_positive ? A(1) : A(0));
    }
  }
}

template <class T>
__device__ inline void priors(const PriorArguments& a) {
  const auto bounded = [&](double v) { return !a.clip ? v : v < 0.0 ? 0.0 : v > 1.0 ? 1.0 : v; };
  for (int64_t i = first(); i < a.pixels * a.per_pixel; i += step()) {
    const int64_t pixel = i / a.per_pixel;
    const HalfSize s = a.half[i % a.per_pixel];
    const double y = (static_cast<double>(pixel / a.width) + a.offset_y) * a.step_y;
    const double x = (static_cast<double>(pixel % a.width) + a.offset_x) * a.step_x;
    T* const out = static_cast<T*>(a.out) + 4 * i;
    out[0] = convert<T>(bounded(x - s.w));
    out[1] = convert<T>(bounded(y - s.h));
    out[2] = convert<T>(bounded(x + s.w));
    out[3] = convert<T>(bounded(y + s.h));
  }
}

}  // namespace hybridnet::device
