// Launches of one kernel over n elements or rows on device::current(), for operators with kernels of their own.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError.
#pragma once

#include <algorithm>
#include <string>

#include "device/program.h"
#include "device/stream.h"
#include "kernels/device/program_table.h"

namespace hybridnet::ops::on_device {

using device::element_name;

// `function`, with its template arguments, of kernels/device/`header`; `arguments`: the name of Arguments.
template <class Arguments>
void launch(const char* header, const char* arguments, const std::string& function, int64_t n, const Arguments& a) {
  if (n <= 0) return;
  device::Program::of(device::include_line(header) + device::kernel_line("run", arguments, function))
      .launch("run", device::geometry_for(n), a);
}

// A block of threads for each row; the threads share 256 values of type `shared`.
template <class Arguments>
void launch_rows(const char* header, const char* arguments, const std::string& function, int64_t rows,
                 const Arguments& a, const char* shared = "double") {
  if (rows <= 0) return;
  device::Program::of(device::include_line(header) +
                      device::block_kernel_line("run", arguments, function, shared, "256"))
      .launch("run", device::geometry_for_rows(rows, 256), a);
}

inline std::string with_type(const char* function, const std::string& type) {
  return std::string(function) + "<" + type + ">";
}
inline std::string with_dtype(const char* function, DType dtype) { return with_type(function, element_name(dtype)); }
// For kernels that only move elements.
inline std::string with_bits(const char* function, DType dtype) {
  return with_type(function, "uint" + std::to_string(8 * dtype_size(dtype)) + "_t");
}

}  // namespace hybridnet::ops::on_device
