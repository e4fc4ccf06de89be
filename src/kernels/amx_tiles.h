// The tile registers of Intel's AMX: 16 rows of 64 bytes each.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace hybridnet::kernels {

// oneDNN, which isa_in_force() asks, has then requested the operating system's permission for this process.
inline bool has_amx() { return isa_in_force().level >= Isa::kAmx; }

}  // namespace hybridnet::kernels

#if defined(__x86_64__)
#include <immintrin.h>

#define HYBRIDNET_AMX \
  __attribute__((target("amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace hybridnet::kernels {

// The operand of _tile_loadconfig: tiles 0 to 5 have these many rows, tiles 6 and 7 all.
struct alignas(64) TileShapes {
  static constexpr int kRows = 16, kRowBytes = 64;
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
  constexpr explicit TileShapes(int first_rows = kRows) {
    for (int tile = 0; tile < 8; ++tile) {
      row_bytes[tile] = kRowBytes;
      rows[tile] = static_cast<uint8_t>(tile < 6 ? first_rows : kRows);
    }
  }
};
static_assert(sizeof(TileShapes) == 64);

// Lets this thread use the tiles while it lives; other users of tiles configure them for themselves. Empty tiles cost
// other threads less when the system switches to them. The shapes must lie in static memory: GCC 12 takes
// _tile_loadconfig for a reader of 8 bytes, and leaves out other writes to a local variable.
class TileScope {
 public:
  HYBRIDNET_AMX explicit TileScope(const TileShapes* shapes) { _tile_loadconfig(shapes); }
  HYBRIDNET_AMX ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
};

inline constexpr TileShapes kWholeTiles;

}  // namespace hybridnet::kernels
#endif
