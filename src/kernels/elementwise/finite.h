// A test for infinite and NaN elements.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// True if no element is infinite or NaN. Integers are finite. Splits over cores; stops early.
bool all_finite(DType dtype, const void* in, int64_t n);

}  // namespace hybridnet::kernels
