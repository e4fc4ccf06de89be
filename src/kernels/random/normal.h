// Normally distributed random numbers.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// out[i] for elements [begin, begin + n) of a tensor, by Box and Muller: both numbers of a pair are used, from words i
// and i + 1 (word i % 4 of Philox block i / 4). begin is a multiple of 256. Runs on the calling thread.
void fill_normal(RngKey key, float mean, float deviation, int64_t begin, int64_t n, float* out);

}  // namespace hybridnet::kernels
