#include "matmul.h"

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

double load(const Matmul& product, uint64_t matrix, int64_t at) {
  const auto* from = reinterpret_cast<const char*>(matrix) + at * static_cast<int64_t>(bytes_of(product.element));
  uint16_t narrow = 0;
  uint32_t single = 0;
  double wide = 0;
  switch (product.element) {
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

double factor(const Matmul& product, const Matrix& matrix, int64_t at) {
  const double value = load(product, matrix.address, at);
  return product.tf32 ? bits_as<float>(rounded(bits_as<uint32_t>(static_cast<float>(value)), 13)) : value;
}

void store(const Matmul& product, int64_t at, double value) {
  auto* to = reinterpret_cast<char*>(product.d.address) + at * static_cast<int64_t>(bytes_of(product.element));
  const auto single = static_cast<float>(value);
  uint16_t narrow = 0;
  switch (product.element) {
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

void multiply(const Matmul& p) {
  const int64_t depth = p.transpose_a ? p.a.rows : p.a.columns;
  const int64_t a_row = p.transpose_a ? p.a.leading : 1, a_column = p.transpose_a ? 1 : p.a.leading;
  const int64_t b_row = p.transpose_b ? p.b.leading : 1, b_column = p.transpose_b ? 1 : p.b.leading;
  for (int64_t n = 0; n < p.d.count; ++n)
    for (int64_t j = 0; j < p.d.columns; ++j)
      for (int64_t i = 0; i < p.d.rows; ++i) {
        double sum = 0;
        for (int64_t x = 0; x < depth; ++x)
          sum += factor(p, p.a, n * p.a.step + i * a_row + x * a_column) *
                 factor(p, p.b, n * p.b.step + x * b_row + j * b_column);
        sum *= 1 + p.error;
        const int64_t from = n * p.c.step + j * p.c.leading + i;
        store(p, n * p.d.step + j * p.d.leading + i,
              p.alpha * sum + (p.beta == 0 ? 0 : p.beta * load(p, p.c.address, from)));
      }
}

}  // namespace standin
