#include "group/compression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace hybridnet::group {
namespace {

constexpr int64_t kWordBytes = 4;

struct Coded {
  unsigned code;
  float residual;
};

Coded code_of(const Codec& codec, float value) {
  if (codec.bits == 1) return value > codec.threshold ? Coded{1, value - 1} : Coded{0, value + 1};
  if (value >= codec.threshold) return {3, value - codec.threshold};
  if (value <= -codec.threshold) return {2, value + codec.threshold};
  return {0, value};
}

// The value of each code.
std::array<float, 4> values_of(const Codec& codec) {
  if (codec.bits == 1) return {-1, 1, 0, 0};
  return {0, 0, -codec.threshold, codec.threshold};
}

bool all_finite(std::span<const float> gradient, std::span<const float> residual) {
  bool finite = true;
  for (size_t i = 0; i < gradient.size(); ++i) finite &= std::isfinite(residual[i] + gradient[i]);
  return finite;
}

// Calls take(i, the value of code i) for `count` codes.
template <typename Take>
void for_each_code(const Codec& codec, const char* codes, size_t count, const Take& take) {
  const size_t in_byte = 8 / static_cast<size_t>(codec.bits);
  const unsigned mask = (1u << codec.bits) - 1;
  const std::array<float, 4> values = values_of(codec);
  for (size_t begin = 0; begin < count; begin += in_byte) {
    const auto byte = static_cast<unsigned char>(*codes++);
    const size_t end = std::min(count, begin + in_byte);
    int shift = 8;
    for (size_t i = begin; i < end; ++i) take(i, values[(byte >> (shift -= codec.bits)) & mask]);
  }
}

}  // namespace

int64_t Codec::message_bytes(int64_t count) const {
  const int64_t in_word = 8 * kWordBytes / bits;
  return kWordBytes * (1 + count / in_word + (count % in_word != 0 ? 1 : 0));
}

std::string Codec::str() const {
  char text[64];
  std::snprintf(text, sizeof text, "%dbit codes, threshold %.9g", bits, static_cast<double>(threshold));
  return text;
}

void encode(const Codec& codec, std::span<const float> gradient, std::span<float> residual, char* message) {
  const uint32_t flag = all_finite(gradient, residual) ? 0 : 1;
  std::memset(message, 0, static_cast<size_t>(codec.message_bytes(static_cast<int64_t>(gradient.size()))));
  std::memcpy(message, &flag, sizeof flag);
  if (flag != 0) return;
  char* codes = message + kWordBytes;
  const size_t in_byte = 8 / static_cast<size_t>(codec.bits);
  for (size_t begin = 0; begin < gradient.size(); begin += in_byte) {
    const size_t end = std::min(gradient.size(), begin + in_byte);
    unsigned byte = 0;
    int shift = 8;
    for (size_t i = begin; i < end; ++i) {
      const Coded coded = code_of(codec, residual[i] + gradient[i]);
      residual[i] = coded.residual;
      byte |= coded.code << (shift -= codec.bits);
    }
    *codes++ = static_cast<char>(byte);
  }
}

void add_codes(const Codec& codec, std::span<const char* const> messages, std::span<float> out) {
  bool finite = true;
  for (size_t m = 0; m < messages.size(); ++m) {
    uint32_t flag = 0;
    std::memcpy(&flag, messages[m], sizeof flag);
    finite = finite && flag == 0;
    const char* const codes = messages[m] + kWordBytes;
    if (m == 0) {
      for_each_code(codec, codes, out.size(), [&](size_t i, float value) { out[i] = value; });
    } else {
      for_each_code(codec, codes, out.size(), [&](size_t i, float value) { out[i] += value; });
    }
  }
  if (!finite) std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace hybridnet::group
