// Products of rows of float32 with packed 8-bit weights: the rows are rounded to bytes first, so that the sums are
// those of integers.
#pragma once

#include <cstdint>

#include "kernels/product/gemm.h"

namespace hybridnet::kernels {

// The grid of one row: value = (byte - zero) * step. It has 256 points, covers the row's values and 0, and has 0 as a
// point; a row that contains NaN or an infinity has a NaN as its step.
struct RowGrid {
  float step;
  int32_t zero;
};

// Rounds rows (count, depth) to bytes, ties to even. The step is at least the smallest normal float. A row's bytes
// depend on neither the other rows nor the instruction set.
void quantize_rows(const float* rows, int64_t count, int64_t depth, uint8_t* bytes, RowGrid* grids);

// out = (rounded rows * weights) * scale + bias + addend. The sums are exact, in integers; the bits of a row depend on
// neither the other rows nor the cores.
struct DynamicByteProduct {
  const void* packed = nullptr;  // byte_product.h
  int64_t depth = 0, columns = 0;
  const float* rows = nullptr;  // (count, depth)
  int64_t count = 0;
  const float* scale = nullptr;   // (columns)
  const float* bias = nullptr;    // (columns), or null
  const float* addend = nullptr;  // (count, columns), or null
  float* out = nullptr;           // (count, columns)
  void* workspace = nullptr;
  const GemmEnds* ends = nullptr;  // end() of each tile, when it is in out; or null
};
inline constexpr int64_t kMaxDynamicDepth = 65536;  // more products of two bytes may exceed 32 bits
int64_t dynamic_byte_product_workspace(int64_t depth, int64_t count);
void dynamic_byte_product(const DynamicByteProduct& p);

}  // namespace hybridnet::kernels
