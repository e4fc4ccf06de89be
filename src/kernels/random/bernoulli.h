// Random masks of bytes: 1 with a given probability, else 0.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// mask[i] = 1 if random number begin + i of the key is below `keep`, in [0, 1]; for i in [0, n). The first 16 bits of
// number i are in place i % 8 of Philox block i / 8. If they equal the first 16 bits of `keep`, once in 65,536 times,
// 16 more bits decide, from the block with the same number of key {~seed, stream}. Runs on the calling thread.
void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask);

}  // namespace hybridnet::kernels
