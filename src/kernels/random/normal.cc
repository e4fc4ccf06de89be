#include "kernels/random/normal.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/normal.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

#include "device/stream.h"
#include "kernels/random/device_random.h"
#include "kernels/random/philox_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// The first uniform of a pair is in (0, 1], down to 2^-33, the second one a multiple of 2^-24. The last elements are
// computed as whole vectors, too: a number does not depend on how many follow it.
void fill_pairs(const uint32_t* words, int64_t count, float mean, float deviation, float* out) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> d32;
  const int64_t step = static_cast<int64_t>(2 * hn::Lanes(d));
  HWY_ALIGN float last[2 * HWY_MAX_BYTES / sizeof(float)];
  for (int64_t i = 0; i < count; i += step) {
    hn::Vec<decltype(d32)> first, second;
    hn::LoadInterleaved2(d32, words + i, first, second);
    const auto u = hn::Mul(hn::Add(hn::ConvertTo(d, first), hn::Set(d, 0.5f)), hn::Set(d, 0x1p-32f));
    const auto radius = hn::Mul(hn::Set(d, deviation), hn::Sqrt(hn::Mul(hn::Set(d, -2.0f), hn::Log(d, u))));
    const auto angle = hn::Mul(hn::ConvertTo(d, hn::ShiftRight<8>(second)), hn::Set(d, 6.2831853f * 0x1p-24f));
    const auto a = hn::MulAdd(radius, hn::Cos(d, angle), hn::Set(d, mean));
    const auto b = hn::MulAdd(radius, hn::Sin(d, angle), hn::Set(d, mean));
    const bool fits = i + step <= count;
    hn::StoreInterleaved2(a, b, d, fits ? out + i : last);
    if (!fits) std::copy_n(last, count - i, out + i);
  }
}

void normal(RngKey key, float mean, float deviation, int64_t begin, int64_t n, float* out) {
  const hn::ScalableTag<uint64_t> d;
  HWY_ALIGN uint64_t words[4 * HWY_MAX_BYTES / sizeof(uint64_t)];
  const int64_t step = static_cast<int64_t>(8 * hn::Lanes(d));
  for (int64_t i = 0; i < n; i += step) {
    philox_vectors(d, key, static_cast<uint64_t>(begin + i) / 4, words);
    fill_pairs(reinterpret_cast<const uint32_t*>(words), std::min(n - i, step), mean, deviation, out + i);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(normal);

void fill_normal(RngKey key, float mean, float deviation, int64_t begin, int64_t n, float* out) {
  if (device::current()) return on_device::fill_normal(key, mean, deviation, begin, n, out);
  HWY_DYNAMIC_DISPATCH(normal)(key, mean, deviation, begin, n, out);
}

}  // namespace hybridnet::kernels
#endif
