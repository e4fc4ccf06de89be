// Hashes of values in memory, and the bit mixing of pseudo-random numbers. Hashes may differ between releases.
#pragma once

#include <cstdint>
#include <string_view>

namespace hybridnet {

inline constexpr uint64_t kGoldenRatio = 0x9e3779b97f4a7c15u;  // 2^64 divided by the golden ratio, made odd

// Adds a value to a hash. The order of the values counts.
constexpr uint64_t mix_hash(uint64_t hash, uint64_t value) { return (hash ^ value) * kGoldenRatio + (hash >> 29); }

// FNV-1a: the same in every process.
constexpr uint64_t hash_text(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// Every bit of the result depends on every bit of x: the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, OOPSLA 2014).
constexpr uint64_t avalanche(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Neighboring numbers give unrelated results.
constexpr uint64_t splitmix64(uint64_t x) { return avalanche(x + kGoldenRatio); }

}  // namespace hybridnet
