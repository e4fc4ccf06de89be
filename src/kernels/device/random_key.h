// The part of hybridnet/kernel.h that random numbers in kernels need (kernels/random/rng.h): texts of kernels find it
// under that name.
#pragma once

#include <cstdint>

namespace hybridnet {

struct RngKey {
  uint64_t seed = 0, stream = 0;
};

}  // namespace hybridnet
