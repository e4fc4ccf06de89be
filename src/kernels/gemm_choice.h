// Which implementation computes a product of float32 matrices, and in which tiles. All that multiply float32 matrices
// by kernels::gemm, or choose between it and another way, ask here.
#pragma once

#include "kernels/gemm.h"

namespace hybridnet::kernels {

enum class GemmAlgorithm : int8_t {
  kOneDnnThreads,  // oneDNN's sgemm shares the product among its own threads
  kOneDnn,         // oneDNN's sgemm of each tile, on one core
  kOpenBlas,       // OpenBLAS's sgemm of each tile, on one core
  kRowDots,        // kernels/row_dots.h of each tile, on one core
  kDirect          // kernels/direct_product.h, on one core
};

// Depends on the sizes and the instruction set alone, so that equal calls give equal bits. No size of `s` is zero.
GemmAlgorithm choose_gemm(const GemmShape& s);

// The size of the tiles that tasks compute: that of C where a second core would not pay. Follows from the sizes alone,
// never from the cores, so that the bits are equal for any number of them. `packs`: each tile packs its operands again.
struct GemmTileSize {
  static constexpr int64_t kRowUnit = 8, kColumnUnit = 16;  // what kernels compute at a time, at least
  int64_t rows, columns;
};
GemmTileSize gemm_tile_size(const GemmShape& s, bool packs);

}  // namespace hybridnet::kernels
