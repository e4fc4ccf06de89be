// The parameters of elementwise kernels (kernels/device/map.cuh), as the library and the kernels see them.
#pragma once

#include <cstdint>

namespace hybridnet::device {

inline constexpr int kMaxMapInputs = 4;
inline constexpr int kMaxMapScalars = 4;
inline constexpr int kMaxMapDims = 16;  // kMaxDims (hybridnet/base.h)

struct MapArguments {
  const void* in[kMaxMapInputs];
  void* out;
  int64_t n;
  int64_t step[kMaxMapInputs];  // 1; 0 for an input of one element, which is used n times
  double scalars[kMaxMapScalars];
};

// A function of two inputs, an array and a number.
struct NumberArguments {
  const void* in;
  void* out;
  int64_t n;
  int64_t number_first;
  uint64_t number;  // the bytes of an element of the type in which the function computes, then zeros
};

// Inputs that repeat along axes: the strides of BroadcastLayout (kernels/elementwise/broadcast.h), in elements.
struct BroadcastArguments {
  const void* in[kMaxMapInputs];
  void* out;
  int64_t n;
  int64_t ndim;
  int64_t dims[kMaxMapDims];
  int64_t strides[kMaxMapInputs][kMaxMapDims];
  double scalars[kMaxMapScalars];
};

// out = (((in[0] + in[1]) + in[2]) + ...); `inputs` of the pointers are used.
inline constexpr int kMaxSumInputs = 30;
struct SumArguments {
  const void* in[kMaxSumInputs];
  void* out;
  int64_t n;
  int64_t inputs;
};
// The same for any number of inputs: their table is in the device's memory.
struct LongSumArguments {
  const void* const* in;
  void* out;
  int64_t n;
  int64_t inputs;
};

// out[i] = condition[i] ? yes[i] : no[i]
struct SelectArguments {
  const void *condition, *yes, *no;
  void* out;
  int64_t n;
};

}  // namespace hybridnet::device
