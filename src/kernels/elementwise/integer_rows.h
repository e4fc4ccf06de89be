// Loops over bytes, and products of rows of 16-bit integers, summed in 32 bits: exact on every instruction set.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

constexpr int64_t kIntegerBlock = 16;  // outputs computed together

inline int64_t integer_pairs(int64_t depth) { return (depth + 1) / 2; }
inline int64_t integer_blocks(int64_t outputs) { return (outputs + kIntegerBlock - 1) / kIntegerBlock; }

// out[r * stride + j] = sum over k of rows[r * 2 pairs + k] * weights[j, k]; `packed` contains, for each block of
// outputs and each pair of k, the pairs of its 16 outputs.
void multiply_integer_rows(const int16_t* rows, int64_t num_rows, int64_t pairs, const int16_t* packed, int64_t outputs,
                           int32_t* out, int64_t stride);

// Converts bytes to 16-bit integers.
void widen_bytes(const int8_t* from, int16_t* to, int64_t n);
void widen_bytes(const uint8_t* from, int16_t* to, int64_t n);

// to = max(to, from); sums += from.
void take_larger_bytes(const int8_t* from, int8_t* to, int64_t n);
void take_larger_bytes(const uint8_t* from, uint8_t* to, int64_t n);
void add_bytes(const int8_t* from, int32_t* sums, int64_t n);
void add_bytes(const uint8_t* from, int32_t* sums, int64_t n);

}  // namespace hybridnet::kernels
