// The instruction sets that kernels use: the machine's, capped by HYBRIDNET_MAX_ISA. Highway, oneDNN and kernels with
// choices of their own obey the cap from the moment the library is loaded.
#pragma once

#include <cstdint>
#include <string_view>

namespace hybridnet::kernels {

// In the order of kIsaWords (hybridnet/env.h).
enum class Isa : int8_t { kSse4, kAvx2, kAvx512, kAvx512Bf16, kAmx };

struct IsaInForce {
  Isa level;                 // the largest that both libraries use in full
  std::string_view name;     // its word in kIsaWords
  std::string_view highway;  // target of the SIMD kernels: SSSE3, AVX2 or AVX3
  std::string_view onednn;   // SSE41, AVX2, AVX512_CORE, ...
};
const IsaInForce& isa_in_force();
// True if the instructions of AVX-512 VNNI are in force, which add products of bytes in 32 bits.
bool has_avx512_vnni();

// The same in one line: "avx2 (Highway AVX2, oneDNN AVX2)". Lives as long as the process.
const char* isa_report();

}  // namespace hybridnet::kernels
