// The choice of the implementation and the tiles of a product of float32 matrices. All code that multiplies float32
// matrices by kernels::gemm, or chooses between it and another implementation, calls this.
#pragma once

#include "kernels/product/gemm.h"

namespace hybridnet::kernels {

enum class GemmAlgorithm : int8_t {
  kOneDnnThreads,  // oneDNN's sgemm shares the product among its own threads
  kOneDnn,         // oneDNN's sgemm for each tile, on one core
  kOpenBlas,       // OpenBLAS's sgemm for each tile, on one core
  kRowDots,        // kernels/product/row_dots.h for each tile, on one core
  kDirect          // kernels/product/small_product.h, on one core
};

// Depends on the sizes and the instruction set alone, so that equal calls give equal bits. No size of `s` is zero.
GemmAlgorithm choose_gemm(const GemmShape& s);

// The size of the tiles that tasks compute: all of C if a second core would not pay. It depends on the sizes alone,
// never on the cores, so that the bits are equal for any number of them. `packs`: each tile packs its operands again.
struct GemmTileSize {
  static constexpr int64_t kRowUnit = 8, kColumnUnit = 16;  // kernels compute at least this much at a time
  int64_t rows, columns;
};
GemmTileSize gemm_tile_size(const GemmShape& s, bool packs);

}  // namespace hybridnet::kernels
