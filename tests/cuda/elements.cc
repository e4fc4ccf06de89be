#include "elements.h"

#include <cmath>
#include <cstring>

namespace standin {
namespace {

template <class T>
T bits_as(auto bits) {
  T value;
  static_assert(sizeof(value) == sizeof(bits));
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounds the bits of a float32 to nearest even, so that `dropped` bits at the end are 0. Infinities and NaN stay.
uint32_t rounded(uint32_t bits, int dropped) {
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  const uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return (bits + half) & ~((1u << dropped) - 1);
}

double half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

uint16_t half_bits(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  const double size = std::fabs(value);
  int exponent = 0;
  std::frexp(size, &exponent);
  if (size == 0 || exponent < -13)  // a subnormal number: a multiple of 2^-24
    return static_cast<uint16_t>(sign | static_cast<int>(std::nearbyint(std::ldexp(std::fmin(size, 1), 24))));
  const auto fraction = static_cast<int>(std::nearbyint(std::ldexp(std::fmin(size, 1e6), 11 - exponent)));
  const int bits = ((exponent + 14) << 10) + fraction - 1024;  // a fraction that rounds up to 2048 carries
  return static_cast<uint16_t>(sign | (size >= 65520 ? 0x7c00 : bits));
}

}  // namespace

size_t bytes_of(Element element) {
  switch (element) {
    case Element::kFloat64:
      return 8;
    case Element::kFloat32:
      return 4;
    case Element::kFloat16:
    case Element::kBFloat16:
      return 2;
  }
  return 0;
}

double load(Element element, uint64_t array, int64_t at) {
  const auto* from = reinterpret_cast<const char*>(array) + at * static_cast<int64_t>(bytes_of(element));
  uint16_t narrow = 0;
  uint32_t single = 0;
  double wide = 0;
  switch (element) {
    case Element::kFloat64:
      std::memcpy(&wide, from, sizeof(wide));
      return wide;
    case Element::kFloat32:
      std::memcpy(&single, from, sizeof(single));
      return bits_as<float>(single);
    case Element::kFloat16:
      std::memcpy(&narrow, from, sizeof(narrow));
      return half_value(narrow);
    case Element::kBFloat16:
      std::memcpy(&narrow, from, sizeof(narrow));
      return bits_as<float>(static_cast<uint32_t>(narrow) << 16);
  }
  return NAN;
}

void store(Element element, uint64_t array, int64_t at, double value) {
  auto* to = reinterpret_cast<char*>(array) + at * static_cast<int64_t>(bytes_of(element));
  const auto single = static_cast<float>(value);
  uint16_t narrow = 0;
  switch (element) {
    case Element::kFloat64:
      std::memcpy(to, &value, sizeof(value));
      return;
    case Element::kFloat32:
      std::memcpy(to, &single, sizeof(single));
      return;
    case Element::kFloat16:
      narrow = half_bits(single);
      break;
    case Element::kBFloat16:
      narrow = static_cast<uint16_t>(std::isnan(single) ? 0x7fc0 : rounded(bits_as<uint32_t>(single), 16) >> 16);
      break;
  }
  std::memcpy(to, &narrow, sizeof(narrow));
}

double as_tf32(double value) { return bits_as<float>(rounded(bits_as<uint32_t>(static_cast<float>(value)), 13)); }

}  // namespace standin
