#include "kernels/bernoulli.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bernoulli.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/rng.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rounds of kernels/rng.h over vectors of blocks, one 64-bit lane per block and word: the low half counts, the high
// half holds leftovers. Two vectors side by side hide the latency of the products. Writes the words block after block.
template <class D>
HWY_INLINE void philox_vectors(D d, RngKey key, uint64_t first, uint64_t* out) {
  using V = hn::Vec<D>;
  const hn::Repartition<uint32_t, D> d32;
  const auto round = [&](V& c0, V& c1, V& c2, V& c3, uint32_t k0, uint32_t k1) HWY_ATTR {
    const V p0 = hn::MulEven(hn::BitCast(d32, c0), hn::Set(d32, 0xD2511F53u));
    const V p1 = hn::MulEven(hn::BitCast(d32, c2), hn::Set(d32, 0xCD9E8D57u));
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, uint64_t{k0}));
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, uint64_t{k1}));
    c1 = p1;
    c3 = p0;
  };
  const size_t lanes = hn::Lanes(d);
  const V stream_low = hn::Set(d, key.stream), stream_high = hn::Set(d, key.stream >> 32);
  V a0 = hn::Iota(d, first), a1 = hn::ShiftRight<32>(a0), a2 = stream_low, a3 = stream_high;
  V b0 = hn::Iota(d, first + lanes), b1 = hn::ShiftRight<32>(b0), b2 = stream_low, b3 = stream_high;
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int i = 0; i < 10; ++i) {
    round(a0, a1, a2, a3, k0, k1);
    round(b0, b1, b2, b3, k0, k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const auto pair = [&](V low, V high) HWY_ATTR {
    return hn::Or(hn::And(low, hn::Set(d, uint64_t{0xFFFFFFFFu})), hn::ShiftLeft<32>(high));
  };
  hn::StoreInterleaved2(pair(a0, a1), pair(a2, a3), d, out);
  hn::StoreInterleaved2(pair(b0, b1), pair(b2, b3), d, out + 2 * lanes);
}

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
