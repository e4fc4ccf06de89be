// Conversion between dtypes in memory of a device, for rooms that do not see src/kernels, too.
// Threads: any. Launches are in the order of current(), which must be set.
// Throws:  DeviceError.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::device {

// out[i] = in[i] for n elements, by the rules of kernels/elementwise/convert.h.
void convert(DType from, const void* in, DType to, void* out, int64_t n);

}  // namespace hybridnet::device
