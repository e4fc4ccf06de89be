#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/byte_steps.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "hybridnet/threads.h"
#include "kernels/conv/byte_steps.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The comparisons keep the old value if the new one is NaN.
void range(const float* x, int64_t n, FloatRange* result) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto low = hn::Set(d, kInfinity), high = hn::Set(d, -kInfinity);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    low = hn::IfThenElse(hn::Lt(v, low), v, low);
    high = hn::IfThenElse(hn::Gt(v, high), v, high);
  }
  FloatRange r{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high))};
  for (; i < n; ++i) {
    r.low = x[i] < r.low ? x[i] : r.low;
    r.high = x[i] > r.high ? x[i] : r.high;
  }
  *result = r;
}

template <typename T>
HWY_INLINE void to_bytes(const float* x, int64_t n, float scale, float shift, T* bytes) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> d8;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto v = hn::Add(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale)), hn::Set(d, shift));
    v = hn::IfThenElseZero(hn::Eq(v, v), v);
    v = hn::Min(hn::Max(v, hn::Set(d, kLow)), hn::Set(d, kHigh));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(v)), d8, bytes + i);
  }
  for (; i < n; ++i) {
    const float v = x[i] * scale + shift;
    bytes[i] = v == v ? static_cast<T>(std::nearbyint(std::clamp(v, kLow, kHigh))) : T(0);
  }
}
void to_signed_bytes(const float* x, int64_t n, float scale, float shift, int8_t* bytes) {
  to_bytes(x, n, scale, shift, bytes);
}
void to_unsigned_bytes(const float* x, int64_t n, float scale, float shift, uint8_t* bytes) {
  to_bytes(x, n, scale, shift, bytes);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(range);
HWY_EXPORT(to_signed_bytes);
HWY_EXPORT(to_unsigned_bytes);
}  // namespace

FloatRange range_of_floats(const float* x, int64_t n) {
  std::atomic<float> low{std::numeric_limits<float>::infinity()}, high{-std::numeric_limits<float>::infinity()};
  parallel_for(n, 0.15, [&](int64_t begin, int64_t end) {
    FloatRange part;
    HWY_DYNAMIC_DISPATCH(range)(x + begin, end - begin, &part);
    float known = low.load(std::memory_order_relaxed);
    while (part.low < known && !low.compare_exchange_weak(known, part.low, std::memory_order_relaxed)) {
    }
    known = high.load(std::memory_order_relaxed);
    while (part.high > known && !high.compare_exchange_weak(known, part.high, std::memory_order_relaxed)) {
    }
  });
  return {low.load(std::memory_order_relaxed), high.load(std::memory_order_relaxed)};
}

void floats_to_bytes(const float* x, int64_t n, float scale, float shift, int8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(to_signed_bytes)(x, n, scale, shift, bytes);
}
void floats_to_bytes(const float* x, int64_t n, float scale, float shift, uint8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(to_unsigned_bytes)(x, n, scale, shift, bytes);
}

}  // namespace hybridnet::kernels
#endif
