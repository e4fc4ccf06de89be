#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/integer_rows.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/elementwise/integer_rows.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::CappedTag<int32_t, kIntegerBlock>;
using D16 = hn::Repartition<int16_t, D32>;
using V32 = hn::Vec<D32>;
constexpr int64_t kLanes = hn::MaxLanes(D32());
constexpr int kVectors = static_cast<int>(kIntegerBlock / kLanes);
constexpr int kRows = kVectors <= 2 ? 4 : 2;  // rows at a time: their sums fit into the registers

// Computes one block of outputs for R rows.
template <int R>
HWY_INLINE void block_of_rows(const int16_t* rows, int64_t pairs, const int16_t* packed, int32_t* sums) {
  const D32 d;
  const D16 d16;
  V32 total[R][kVectors];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::Zero(d);
  for (int64_t k = 0; k < pairs; ++k) {
    hn::Vec<D16> weights[kVectors];
    for (int v = 0; v < kVectors; ++v) weights[v] = hn::LoadU(d16, packed + k * 2 * kIntegerBlock + v * 2 * kLanes);
    for (int r = 0; r < R; ++r) {
      int32_t pair;
      std::memcpy(&pair, rows + (r * pairs + k) * 2, sizeof(pair));
      const auto data = hn::BitCast(d16, hn::Set(d, pair));
      for (int v = 0; v < kVectors; ++v) {
        V32 odd = hn::Zero(d);
        total[r][v] = hn::ReorderWidenMulAccumulate(d, data, weights[v], total[r][v], odd);
        total[r][v] = hn::RearrangeToOddPlusEven(total[r][v], odd);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(total[r][v], d, sums + r * kIntegerBlock + v * kLanes);
}

void multiply_rows(const int16_t* rows, int64_t num_rows, int64_t pairs, const int16_t* packed, int64_t outputs,
                   int32_t* out, int64_t stride) {
  int32_t sums[kRows * kIntegerBlock];
  for (int64_t j = 0; j < outputs; j += kIntegerBlock, packed += 2 * pairs * kIntegerBlock) {
    const int64_t width = std::min(kIntegerBlock, outputs - j);
    for (int64_t r = 0; r < num_rows; r += kRows) {
      const int64_t count = std::min<int64_t>(kRows, num_rows - r);
      if (count == kRows) {
        block_of_rows<kRows>(rows + r * 2 * pairs, pairs, packed, sums);
      } else {
        for (int64_t i = 0; i < count; ++i)
          block_of_rows<1>(rows + (r + i) * 2 * pairs, pairs, packed, sums + i * kIntegerBlock);
      }
      for (int64_t i = 0; i < count; ++i)
        std::memcpy(out + (r + i) * stride + j, sums + i * kIntegerBlock, static_cast<size_t>(width) * sizeof(int32_t));
    }
  }
}

template <typename T>
HWY_INLINE void widen(const T* from, int16_t* to, int64_t n) {
  const hn::ScalableTag<int16_t> d;
  const hn::Rebind<T, decltype(d)> bytes;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(bytes, from + i)), d, to + i);
  for (; i < n; ++i) to[i] = from[i];
}
void widen_signed(const int8_t* from, int16_t* to, int64_t n) { widen(from, to, n); }
void widen_unsigned(const uint8_t* from, int16_t* to, int64_t n) { widen(from, to, n); }

// Calls vector() for whole vectors, then element() for single elements.
template <class D, typename F, typename R>
HWY_INLINE void in_vectors(D d, int64_t n, F&& vector, R&& element) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vector(i);
  for (; i < n; ++i) element(i);
}

template <typename T>
HWY_INLINE void take_larger(const T* from, T* to, int64_t n) {
  const hn::ScalableTag<T> d;
  in_vectors(
      d, n, [&](int64_t i) { hn::StoreU(hn::Max(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i); },
      [&](int64_t i) { to[i] = std::max(to[i], from[i]); });
}
void take_larger_signed(const int8_t* from, int8_t* to, int64_t n) { take_larger(from, to, n); }
void take_larger_unsigned(const uint8_t* from, uint8_t* to, int64_t n) { take_larger(from, to, n); }

template <typename T>
HWY_INLINE void add(const T* from, int32_t* sums, int64_t n) {
  const hn::ScalableTag<int32_t> d;
  const hn::Rebind<T, decltype(d)> bytes;
  in_vectors(
      d, n,
      [&](int64_t i) {
        hn::StoreU(hn::Add(hn::LoadU(d, sums + i), hn::PromoteTo(d, hn::LoadU(bytes, from + i))), d, sums + i);
      },
      [&](int64_t i) { sums[i] += from[i]; });
}
void add_signed(const int8_t* from, int32_t* sums, int64_t n) { add(from, sums, n); }
void add_unsigned(const uint8_t* from, int32_t* sums, int64_t n) { add(from, sums, n); }

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(multiply_rows);
HWY_EXPORT(widen_signed);
HWY_EXPORT(widen_unsigned);
HWY_EXPORT(take_larger_signed);
HWY_EXPORT(take_larger_unsigned);
HWY_EXPORT(add_signed);
HWY_EXPORT(add_unsigned);
}  // namespace

void multiply_integer_rows(const int16_t* rows, int64_t num_rows, int64_t pairs, const int16_t* packed, int64_t outputs,
                           int32_t* out, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(rows, num_rows, pairs, packed, outputs, out, stride);
}
void widen_bytes(const int8_t* from, int16_t* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_signed)(from, to, n); }
void widen_bytes(const uint8_t* from, int16_t* to, int64_t n) { HWY_DYNAMIC_DISPATCH(widen_unsigned)(from, to, n); }
void take_larger_bytes(const int8_t* from, int8_t* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(take_larger_signed)(from, to, n);
}
void take_larger_bytes(const uint8_t* from, uint8_t* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(take_larger_unsigned)(from, to, n);
}
void add_bytes(const int8_t* from, int32_t* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(add_signed)(from, sums, n); }
void add_bytes(const uint8_t* from, int32_t* sums, int64_t n) { HWY_DYNAMIC_DISPATCH(add_unsigned)(from, sums, n); }

}  // namespace hybridnet::kernels
#endif
