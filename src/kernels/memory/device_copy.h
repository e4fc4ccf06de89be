// Copies, fills and conversions of memory of a device: the forms of kernels/memory and kernels/elementwise/convert.h
// that run on device::current(), which must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"
#include "kernels/device/moves_arguments.h"

namespace hybridnet::kernels::on_device {

void copy_bytes(const void* src, void* dst, int64_t bytes);
void zero_bytes(void* dst, int64_t bytes);
// axes: without sizes of 1 and merged (StridedCopy::run). element_bytes: any size above 0.
void copy_strided(device::StridedArguments axes, int64_t element_bytes);
// Writes n elements with these bits, of 1, 2, 4 or 8 bytes.
void fill_elements(void* out, int64_t n, int64_t element_bytes, uint64_t bits);
void convert(DType from, const void* in, DType to, void* out, int64_t n);

}  // namespace hybridnet::kernels::on_device
