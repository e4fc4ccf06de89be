// Counter-based random bits: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). Block b of a key is a pure function of (key, b), so results do not depend on threads, order or
// recomputation.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// Four words of 32 random bits.
struct PhiloxBlock {
  uint32_t word[4];
};

inline PhiloxBlock philox(RngKey key, uint64_t block) {
  constexpr uint32_t kMultiplier0 = 0xD2511F53u, kMultiplier1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32);
  uint32_t c2 = static_cast<uint32_t>(key.stream), c3 = static_cast<uint32_t>(key.stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMultiplier0) * c0, p1 = static_cast<uint64_t>(kMultiplier1) * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// out[4 * i + w] = word w of block first + i. Eight blocks at a time, in a form that compilers turn into SIMD.
inline void philox_fill(RngKey key, uint64_t first, int64_t blocks, uint32_t* out) {
  constexpr int kLanes = 8;
  int64_t i = 0;
  for (; i + kLanes <= blocks; i += kLanes) {
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const uint64_t block = first + static_cast<uint64_t>(i + l);
      c0[l] = static_cast<uint32_t>(block);
      c1[l] = static_cast<uint32_t>(block >> 32);
      c2[l] = static_cast<uint32_t>(key.stream);
      c3[l] = static_cast<uint32_t>(key.stream >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int l = 0; l < kLanes; ++l) {
        const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c0[l], p1 = static_cast<uint64_t>(0xCD9E8D57u) * c2[l];
        c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
        c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
        c1[l] = static_cast<uint32_t>(p1);
        c3[l] = static_cast<uint32_t>(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    for (int l = 0; l < kLanes; ++l) {
      uint32_t* block = out + 4 * (i + l);
      block[0] = c0[l];
      block[1] = c1[l];
      block[2] = c2[l];
      block[3] = c3[l];
    }
  }
  for (; i < blocks; ++i) {
    const PhiloxBlock b = philox(key, first + static_cast<uint64_t>(i));
    for (int w = 0; w < 4; ++w) out[4 * i + w] = b.word[w];
  }
}

// Uniform in [0, 1): all multiples of 2^-24, of 2^-53.
inline float uniform_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
inline double uniform_double(uint32_t high, uint32_t low) {
  return static_cast<double>((static_cast<uint64_t>(high) << 32 | low) >> 11) * 0x1p-53;
}

// The random words of one element of a tensor, as many as its sampler requests (rejection methods need an unknown
// number). Elements up to 2^40, up to 2^26 words each; beyond that words repeat.
class ElementBits {
 public:
  ElementBits(RngKey key, uint64_t element) : key_(key), next_block_(element << 24) {}
  uint32_t next() {
    if (used_ == 4) {
      block_ = philox(key_, next_block_++);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  double uniform() {  // [0, 1)
    const uint32_t high = next();
    return uniform_double(high, next());
  }
  double uniform_positive() { return 1.0 - uniform(); }  // (0, 1]

 private:
  RngKey key_;
  uint64_t next_block_;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace hybridnet::kernels
