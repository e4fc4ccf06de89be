// Floats as bytes.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

struct FloatRange {
  float low, high;
};
// The least and the largest of n > 0 values; NaN are passed over. On as many cores as pay.
FloatRange range_of_floats(const float* x, int64_t n);

// bytes[i] = x[i] * scale + shift, rounded to the nearest integer, halves to even, saturated; zero for NaN. Called
// within parallel loops.
void floats_to_bytes(const float* x, int64_t n, float scale, float shift, int8_t* bytes);
void floats_to_bytes(const float* x, int64_t n, float scale, float shift, uint8_t* bytes);

}  // namespace hybridnet::kernels
