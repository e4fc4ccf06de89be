// Products of bfloat16 for fused attention, in the tile registers of AMX.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// c (m, width) = a b, or c + a b, summed in float32. a (m, depth) has rows a_row elements apart. b (depth / 2, width)
// consists of pairs of rows: the lower half of a number belongs to the first. m and width are multiples of 16, and
// depth of 32. The caller holds a TileScope of whole tiles.
void half_product(int64_t m, int64_t width, int64_t depth, const bfloat16* a, int64_t a_row, const uint32_t* b,
                  bool adds, float* c);

}  // namespace hybridnet::kernels
