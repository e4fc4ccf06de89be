// Sums of products of bytes by the tiles of AMX.
#pragma once

#include "kernels/product/byte_blocks.h"

namespace hybridnet::kernels {

constexpr int64_t kAmxQuads = 16;  // quads of the depth that an instruction multiplies

// Computes the sums of the first b.quads / kAmxQuads * kAmxQuads quads, without b.shift, of rows of unsigned bytes.
// Only where has_amx() is true.
void amx_block(const ByteBlock& b);

}  // namespace hybridnet::kernels
