// The parameters of kernels that chains of elementwise functions become (kernels/elementwise/device_fused.h), as the
// library and the kernels see them.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// An input that repeats along axes: the axes of the result from the outermost, with its strides in elements.
template <int kDims>
struct FusedAxes {
  int64_t dims[kDims];
  int64_t strides[kDims];
};

// kRepeated of the inputs have axes. numbers: parameters of functions, and numbers that are operands (their bytes).
template <int kInputs, int kOutputs, int kRepeated, int kDims, int kNumbers>
struct FusedArguments {
  int64_t n;
  const void* in[kInputs];
  void* out[kOutputs];
  FusedAxes<kDims> repeated[kRepeated];
  double numbers[kNumbers];
};

}  // namespace hybridnet::device
