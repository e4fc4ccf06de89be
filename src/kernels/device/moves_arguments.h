// The parameters of the kernels of moves.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct FillArguments {
  void* out;
  int64_t n;
  uint64_t bits;  // one element, in the low bytes
};

struct CopyArguments {
  const void* src;
  void* dst;
  int64_t n;
};

// A copy between strided layouts, axes outermost first; strides in elements.
struct StridedArguments {
  static constexpr int kMaxAxes = 49;  // those of StridedCopy, and one within an element
  struct Axis {
    int64_t size, src, dst;
  };
  const void* src;
  void* dst;
  int64_t n;  // product of all sizes
  int32_t count;
  Axis axes[kMaxAxes];
};
static_assert(sizeof(StridedArguments) <= 4096, "parameters of a kernel are limited to 4 KiB");

}  // namespace hybridnet::device
