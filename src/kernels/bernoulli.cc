#include "kernels/bernoulli.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bernoulli.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/rng.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// The rounds of kernels/rng.h over kLanes blocks side by side, written as loops that the compiler turns into vectors of the
// target's width.
constexpr int kLanes = 16;

void philox_lanes(RngKey key, uint64_t first, uint32_t* out) {
  uint64_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];  // the low 32 bits count
  for (int l = 0; l < kLanes; ++l) {
    const uint64_t block = first + static_cast<uint64_t>(l);
    c0[l] = block & 0xFFFFFFFFu;
    c1[l] = block >> 32;
    c2[l] = key.stream & 0xFFFFFFFFu;
    c3[l] = key.stream >> 32;
  }
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t p0 = 0xD2511F53ull * c0[l], p1 = 0xCD9E8D57ull * c2[l];
      c0[l] = (p1 >> 32) ^ c1[l] ^ k0;
      c2[l] = (p0 >> 32) ^ c3[l] ^ k1;
      c1[l] = p1 & 0xFFFFFFFFu;
      c3[l] = p0 & 0xFFFFFFFFu;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int l = 0; l < kLanes; ++l) {
    out[4 * l] = static_cast<uint32_t>(c0[l]);
    out[4 * l + 1] = static_cast<uint32_t>(c1[l]);
    out[4 * l + 2] = static_cast<uint32_t>(c2[l]);
    out[4 * l + 3] = static_cast<uint32_t>(c3[l]);
  }
}

void fill(RngKey key, uint32_t below, int64_t begin, int64_t n, uint8_t* mask) {
  uint32_t words[4 * kLanes];
  for (int64_t i = 0; i < n; i += 4 * kLanes) {
    philox_lanes(key, static_cast<uint64_t>(begin + i) / 4, words);
    const int64_t count = std::min<int64_t>(n - i, 4 * kLanes);
    for (int64_t j = 0; j < count; ++j) mask[i + j] = words[j] < below;
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
