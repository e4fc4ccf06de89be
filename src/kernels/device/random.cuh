// Random numbers: the words of kernels/random/rng.h, and the CPU's functions of them (kernels/random).
#pragma once

#include "hwy/contrib/math/math-inl.h"
#include "kernels/device/elements.cuh"
#include "kernels/device/random_arguments.h"
#include "kernels/random/rng.h"

namespace hybridnet::device {

// Word k of a block: an index that is known only at run time would place the block in memory.
inline __device__ uint32_t word_at(const kernels::PhiloxBlock& block, int64_t k) {
  const uint32_t low = k % 2 == 0 ? block.word[0] : block.word[1], high = k % 2 == 0 ? block.word[2] : block.word[3];
  return k < 2 ? low : high;
}

// True with the probability below / 2^32 for element i (kernels/random/bernoulli.h).
inline __device__ bool drawn(RngKey key, uint64_t below, int64_t i) {
  if (below >> 32 != 0) return true;
  const uint64_t block = static_cast<uint64_t>(i) / 8;
  const int word = static_cast<int>(i % 8 / 2), shift = static_cast<int>(i % 2 * 16);
  const uint32_t number = word_at(kernels::philox(key, block), word) >> shift & 0xffffu;
  const uint32_t high = static_cast<uint32_t>(below >> 16), low = static_cast<uint32_t>(below) & 0xffffu;
  if (number != high) return number < high;
  return (word_at(kernels::philox({~key.seed, key.stream}, block), word) >> shift & 0xffffu) < low;
}

inline __device__ RngKey key_of(const RandomArguments& a) { return {a.seed, a.stream}; }

// Bytes of 0 and 1.
inline __device__ void bernoulli(const RandomArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<uint8_t*>(a.out)[i] = drawn(key_of(a), a.below, a.begin + i) ? 1 : 0;
}

// A pair of normal numbers by Box and Muller from words 2i and 2i + 1 (kernels/random/normal.cc). begin is even.
inline __device__ void normal(const RandomArguments& a) {
  namespace hn = hwy::N_ONE_LANE;
  const hn::ScalableTag<float> d;
  float* out = static_cast<float*>(a.out);
  const float mean = static_cast<float>(a.low), deviation = static_cast<float>(a.high);
  for (int64_t i = 2 * first(); i < a.n; i += 2 * step()) {
    const uint64_t word = static_cast<uint64_t>(a.begin + i);
    const kernels::PhiloxBlock block = kernels::philox(key_of(a), word / 4);
    const float u = (static_cast<float>(word_at(block, static_cast<int64_t>(word % 4))) + 0.5f) * 0x1p-32f;
    const float radius = deviation * std::sqrt(-2.0f * hn::Log(d, u));
    const float angle =
        static_cast<float>(word_at(block, static_cast<int64_t>(word % 4) + 1) >> 8) * (6.2831853f * 0x1p-24f);
    out[i] = std::fma(radius, hn::Cos(d, angle), mean);
    if (i + 1 < a.n) out[i + 1] = std::fma(radius, hn::Sin(d, angle), mean);
  }
}

// Normal float64 numbers: each block of words gives a pair (ops/random/draw.cc). begin is 0.
inline __device__ void normal_double(const RandomArguments& a) {
  double* out = static_cast<double*>(a.out);
  for (int64_t pair = first(); 2 * pair < a.n; pair += step()) {
    const kernels::PhiloxBlock block = kernels::philox(key_of(a), static_cast<uint64_t>(pair));
    const double u = 1.0 - kernels::uniform_double(block.word[0], block.word[1]);
    const double radius = a.high * std::sqrt(-2.0 * std::log(u));
    const double angle = 6.283185307179586 * kernels::uniform_double(block.word[2], block.word[3]);
    out[2 * pair] = a.low + radius * std::cos(angle);
    if (2 * pair + 1 < a.n) out[2 * pair + 1] = a.low + radius * std::sin(angle);
  }
}

// Uniform numbers in [low, high): a value that rounding lifts to `high` becomes `low`. Floats have a word each, doubles
// have two. begin is 0.
template <class T>
__device__ void uniform(const RandomArguments& a) {
  using N = std::conditional_t<std::is_same_v<T, double>, double, float>;
  T* out = static_cast<T*>(a.out);
  const N low = static_cast<N>(a.low), range = static_cast<N>(a.high - a.low);
  for (int64_t i = first(); i < a.n; i += step()) {
    N u;
    if constexpr (std::is_same_v<T, double>) {
      const kernels::PhiloxBlock block = kernels::philox(key_of(a), static_cast<uint64_t>(i / 2));
      u = i % 2 == 0 ? kernels::uniform_double(block.word[0], block.word[1])
                     : kernels::uniform_double(block.word[2], block.word[3]);
    } else {
      u = kernels::uniform_float(word_at(kernels::philox(key_of(a), static_cast<uint64_t>(i / 4)), i % 4));
    }
    const T value = convert<T>(low + range * u);
    const bool lifted = convert<N>(value) >= convert<N>(convert<T>(static_cast<N>(a.high)));
    out[i] = lifted ? convert<T>(low) : value;
  }
}

// out = in * factor where mask is 1, or where a number is drawn and stored in mask if there is no mask yet; else 0.
template <class T, bool kDraws>
__device__ void dropout(const RandomArguments& a) {
  using N = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const N factor = static_cast<N>(a.high);
  uint8_t* mask = static_cast<uint8_t*>(a.mask);
  for (int64_t i = first(); i < a.n; i += step()) {
    const bool kept = kDraws ? drawn(key_of(a), a.below, i) : mask[i] != 0;
    if (kDraws && mask) mask[i] = kept ? 1 : 0;
    const N x = convert<N>(static_cast<const T*>(a.in)[i]);
    static_cast<T*>(a.out)[i] = kept ? convert<T>(x * factor) : convert<T>(N(0));
  }
}

}  // namespace hybridnet::device
