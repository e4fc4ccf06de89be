// Stand-ins for the .approx instructions, whose bits only hardware knows: correctly rounded values. A text that uses
// them is not compared bit by bit; the translation refuses it unless a test allows it.
#pragma once

#include "ptx_numbers.h"

namespace ptx {

template <bool kFlush, class Function>
inline uint32_t approximate(uint32_t a, Function function) {
  const auto flush = [](float x) { return kFlush && std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; };
  return bits(flush(float(function(double(flush(value<float>(a)))))));
}
template <bool kFlush>
inline uint32_t ex2_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::exp2(x); });
}
template <bool kFlush>
inline uint32_t lg2_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::log2(x); });
}
template <bool kFlush>
inline uint32_t sin_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::sin(x); });
}
template <bool kFlush>
inline uint32_t cos_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::cos(x); });
}
template <bool kFlush>
inline uint32_t tanh_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::tanh(x); });
}
template <bool kFlush>
inline uint32_t rcp_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return 1 / x; });
}
template <bool kFlush>
inline uint32_t rsqrt_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return 1 / std::sqrt(x); });
}
template <bool kFlush>
inline uint32_t sqrt_approx(uint32_t a) {
  return approximate<kFlush>(a, [](double x) { return std::sqrt(x); });
}
template <bool kFlush>
inline uint32_t div_approx(uint32_t a, uint32_t b) {
  return approximate<kFlush>(a, [b](double x) { return x / value<float>(b); });
}

// The float64 forms fill the upper word only.
constexpr uint64_t kUpperWord = 0xffffffff00000000ull;
inline uint64_t rcp_approx_f64(uint64_t a) { return bits(1 / value<double>(a & kUpperWord)) & kUpperWord; }
inline uint64_t rsqrt_approx_f64(uint64_t a) { return bits(1 / std::sqrt(value<double>(a & kUpperWord))) & kUpperWord; }

}  // namespace ptx
