// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hybridnet {

using Digest = std::array<uint8_t, 32>;

// Owner:   its holder.
// Threads: one at a time.
class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  Digest digest();  // The digest of all bytes so far; nothing may be added afterwards.

 private:
  void add_block(const uint8_t* block);
  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  uint64_t bytes_ = 0;
};

Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);
// Takes the same time whatever the digests are.
bool equal(const Digest& a, const Digest& b);

}  // namespace hybridnet
