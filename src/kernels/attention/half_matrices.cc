#include "kernels/attention/half_matrices.h"

#include "hybridnet/error.h"
#include "kernels/amx_tiles.h"

namespace hybridnet::kernels {

#if defined(__x86_64__)
HYBRIDNET_AMX void half_product(int64_t m, int64_t width, int64_t depth, const bfloat16* a, int64_t a_row,
                                const uint32_t* b, bool adds, float* c) {
  constexpr int64_t kSide = 16, kDepth = 32;
  const int64_t row = width * 4;
  // Two tiles of columns at a time: each tile of `a` is used twice.
  for (int64_t i = 0; i < m; i += kSide)
    for (int64_t j = 0; j < width; j += 2 * kSide) {
      const bool wide = j + kSide < width;
      float* const to = c + i * width + j;
      _tile_zero(0);
      _tile_zero(1);
      if (adds) {
        _tile_loadd(0, to, row);
        if (wide) _tile_loadd(1, to + kSide, row);
      }
      for (int64_t k = 0; k < depth; k += kDepth) {
        const uint32_t* const from = b + k / 2 * width + j;
        _tile_loadd(2, a + i * a_row + k, a_row * 2);
        _tile_loadd(3, from, row);
        _tile_dpbf16ps(0, 2, 3);
        if (!wide) continue;
        _tile_loadd(4, from + kSide, row);
        _tile_dpbf16ps(1, 2, 4);
      }
      _tile_stored(0, to, row);
      if (wide) _tile_stored(1, to + kSide, row);
    }
}
#else
void half_product(int64_t, int64_t, int64_t, const bfloat16*, int64_t, const uint32_t*, bool, float*) {
  throw UnsupportedError({.input = "query", .expected = "a processor with AMX", .given = "another one"});
}
#endif

}  // namespace hybridnet::kernels
