// Random masks of bytes: 1 with a given probability, else 0.
#pragma once

#include <cstdint>

#include "hybridnet/op.h"

namespace hybridnet::kernels {

// mask[i] = 1 where random word i of the key (word i % 4 of Philox block i / 4) lies below `keep` * 2^32, for elements
// [begin, begin + n); begin is a multiple of 4. keep in [0, 1]. Does not open threads.
void fill_bernoulli(RngKey key, double keep, int64_t begin, int64_t n, uint8_t* mask);

}  // namespace hybridnet::kernels
