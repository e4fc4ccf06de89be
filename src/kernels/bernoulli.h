// Random masks of bytes: 1 with a given probability, else 0.
#pragma once

#include <cstdint>

#include "hybridnet/op.h"

namespace hybridnet::kernels {

// mask[i] = 1 where random number begin + i of the key lies below `keep`, in [0, 1]; for i in [0, n). Number i begins
// with the 16 bits that stand in place i % 8 of Philox block i / 8. Where these equal the first 16 bits of `keep`, as
// happens once in 65,536 times, 16 more decide, of the block with the same number of key {~seed, stream}. Does not open
// threads.
void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask);

}  // namespace hybridnet::kernels
