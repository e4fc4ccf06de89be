// The random words of kernels/random/rng.h, many blocks at a time. Included once per SIMD target, hence the toggled
// guard.
#if defined(HYBRIDNET_PHILOX_VECTORS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_PHILOX_VECTORS_H_
#undef HYBRIDNET_PHILOX_VECTORS_H_
#else
#define HYBRIDNET_PHILOX_VECTORS_H_
#endif

#include <hwy/highway.h>

#include "kernels/random/rng.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The rounds of kernels/random/rng.h over vectors of blocks, one 64-bit lane per block and word: the low half counts,
// the high half is undefined. Interleaving two vectors hides the latency of the products. Writes the words block after
// block.
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

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
