// The tile registers of Intel's AMX: 16 rows of 64 bytes each. For code behind `has_amx()`.
#pragma once

#include "kernels/isa.h"

namespace hybridnet::kernels {

// oneDNN, which isa_in_force() asks, has then requested the operating system's permission for this process.
inline bool has_amx() { return isa_in_force().level >= Isa::kAmx; }

}  // namespace hybridnet::kernels

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstdint>

#define HYBRIDNET_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace hybridnet::kernels {

// Lets this thread use all tiles at full size while it lives. Other users of tiles configure them for themselves.
class WholeTiles {
 public:
  HYBRIDNET_AMX WholeTiles() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } const config;
    _tile_loadconfig(&config);
  }
  HYBRIDNET_AMX ~WholeTiles() { _tile_release(); }
  WholeTiles(const WholeTiles&) = delete;
};

}  // namespace hybridnet::kernels
#else
namespace hybridnet::kernels {
class WholeTiles {};
}  // namespace hybridnet::kernels
#endif
