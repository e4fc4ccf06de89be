#include "kernels/bernoulli.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bernoulli.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/philox_vectors.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void fill(RngKey key, uint32_t below, int64_t begin, int64_t n, uint8_t* mask) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const hn::Rebind<uint8_t, decltype(d32)> d8;
  HWY_ALIGN uint64_t words[4 * HWY_MAX_BYTES / sizeof(uint64_t)];
  const int64_t step = static_cast<int64_t>(8 * hn::Lanes(d)), width = static_cast<int64_t>(hn::Lanes(d32));
  const auto* numbers = reinterpret_cast<const uint32_t*>(words);
  const auto limit = hn::Set(d32, below), one = hn::Set(d32, 1u);
  for (int64_t i = 0; i < n; i += step) {
    philox_vectors(d, key, static_cast<uint64_t>(begin + i) / 4, words);
    const int64_t count = std::min(n - i, step);
    int64_t j = 0;
    for (; j + width <= count; j += width) {
      const auto kept = hn::IfThenElseZero(hn::Lt(hn::Load(d32, numbers + j), limit), one);
      hn::StoreU(hn::TruncateTo(d8, kept), d8, mask + i + j);
    }
    for (; j < count; ++j) mask[i + j] = numbers[j] < below;
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(fill);

void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask) {
  const double below = keep * 0x1p32;
  if (below >= 0x1p32) {
    std::fill_n(mask, n, uint8_t{1});
    return;
  }
  HWY_DYNAMIC_DISPATCH(fill)(key, static_cast<uint32_t>(below), begin, n, mask);
}

}  // namespace hybridnet::kernels
#endif
