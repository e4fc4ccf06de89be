// Sums of products of bytes by the tiles of AMX.
#pragma once

#include "kernels/product/byte_blocks.h"

namespace hybridnet::kernels {

constexpr int64_t kAmxQuads = 16;  // of a step along the depth
constexpr int64_t kAmxRows = 16;   // of a tile

// Computes the sums of the first b.quads / kAmxQuads * kAmxQuads quads, without b.shift, of at least kAmxRows rows of
// unsigned bytes. has_amx_bytes() tells whether the machine has the instructions.
void amx_block(const ByteBlock& b);

}  // namespace hybridnet::kernels
