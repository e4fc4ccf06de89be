// Reductions, cumulative sums and positions of extremes in memory of a device: the forms of reduce.h, cumsum.h and
// arg_extreme.h that run on device::current(), which must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"
#include "kernels/reduce/arg_extreme.h"
#include "kernels/reduce/reduce.h"

namespace hybridnet::kernels::on_device {

void reduce(Reduction reduction, Finish finish, DType dtype, const void* in, const Shape& shape, uint32_t axes,
            DType out_dtype, void* out);
void cumsum(DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner, bool from_end, DType out_dtype,
            void* out);
void arg_extreme(Extreme extreme, DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner,
                 DType out_dtype, void* out);

}  // namespace hybridnet::kernels::on_device
