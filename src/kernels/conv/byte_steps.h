// Conversion of floats to bytes by a scale and a shift.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

struct FloatRange {
  float low, high;
};
// Returns the smallest and largest of n > 0 values, ignoring NaN. Uses as many cores as is worthwhile.
FloatRange range_of_floats(const float* x, int64_t n);

// bytes[i] = x[i] * scale + shift, rounded to the nearest integer, halves to even, saturated; NaN becomes 0. For use
// inside parallel loops.
void floats_to_bytes(const float* x, int64_t n, float scale, float shift, int8_t* bytes);
void floats_to_bytes(const float* x, int64_t n, float scale, float shift, uint8_t* bytes);

}  // namespace hybridnet::kernels
