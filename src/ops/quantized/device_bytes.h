// Launches of the kernels of bytes.cuh on device::current().
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError.
#pragma once

#include <string>

#include "kernels/device/byte_arguments.h"
#include "ops/device_launch.h"
#include "ops/quantized/ranges.h"

namespace hybridnet::ops::on_device {

// The types of a kernel's elements: "int8_t, uint8_t".
template <class... Types>
std::string type_list(DType first, Types... others) {
  std::string list = element_name(first);
  ((list += ", " + element_name(others)), ...);
  return list;
}

inline void launch_bytes(const char* function, const std::string& types, const device::ByteArguments& a) {
  launch("bytes.cuh", "ByteArguments", types.empty() ? function : with_type(function, types), a.n, a);
}

// The smallest and largest of n > 0 numbers, float32 or int32, ignoring NaN. Waits for the device.
Range range_of(DType dtype, const void* x, int64_t n);

}  // namespace hybridnet::ops::on_device
