#include "kernels/random/bernoulli.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/bernoulli.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "device/stream.h"
#include "kernels/random/device_random.h"
#include "kernels/random/philox_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The numbers that one call of philox_vectors generates.
constexpr int64_t kMaxStep = static_cast<int64_t>(16 * HWY_MAX_BYTES / sizeof(uint64_t));

// Fills one step of numbers beginning at `first`, a multiple of 8.
HWY_INLINE void fill_step(RngKey key, uint32_t below, int64_t first, uint8_t* mask) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint16_t, decltype(d)> d16;
  const hn::Rebind<uint8_t, decltype(d16)> d8;
  HWY_ALIGN uint64_t words[4 * HWY_MAX_BYTES / sizeof(uint64_t)];
  const int64_t step = static_cast<int64_t>(16 * hn::Lanes(d)), width = static_cast<int64_t>(hn::Lanes(d16));
  const auto* numbers = reinterpret_cast<const uint16_t*>(words);
  philox_vectors(d, key, static_cast<uint64_t>(first) / 8, words);
  const uint16_t high = static_cast<uint16_t>(below >> 16), low = static_cast<uint16_t>(below);
  const auto limit = hn::Set(d16, high), one = hn::Set(d16, uint16_t{1});
  for (int64_t j = 0; j < step; j += width) {
    const auto number = hn::Load(d16, numbers + j);
    hn::StoreU(hn::TruncateTo(d8, hn::IfThenElseZero(hn::Lt(number, limit), one)), d8, mask + j);
    if (HWY_LIKELY(hn::AllFalse(d16, hn::Eq(number, limit)))) continue;
    for (int64_t i = j; i < j + width; ++i) {
      if (numbers[i] != high) continue;
      const PhiloxBlock more = philox({~key.seed, key.stream}, static_cast<uint64_t>(first + i) / 8);
      mask[i] = static_cast<uint16_t>(more.word[i % 8 / 2] >> (i % 2 * 16)) < low;
    }
  }
}

void fill(RngKey key, uint32_t below, int64_t begin, int64_t n, uint8_t* mask) {
  const int64_t step = static_cast<int64_t>(16 * hn::Lanes(hn::ScalableTag<uint64_t>()));
  for (int64_t at = -(begin % 8); at < n; at += step) {
    if (at >= 0 && at + step <= n) {
      fill_step(key, below, begin + at, mask + at);
      continue;
    }
    uint8_t drawn[kMaxStep];
    fill_step(key, below, begin + at, drawn);
    const int64_t from = std::max<int64_t>(at, 0), to = std::min(at + step, n);
    std::copy(drawn + (from - at), drawn + (to - at), mask + from);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(fill);

void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask) {
  if (device::current()) return on_device::fill_bernoulli(key, keep, begin, n, mask);
  const double below = keep * 0x1p32;
  if (below >= 0x1p32) {
    std::fill_n(mask, n, uint8_t{1});
    return;
  }
  HWY_DYNAMIC_DISPATCH(fill)(key, static_cast<uint32_t>(below), begin, n, mask);
}

}  // namespace hybridnet::kernels
#endif
