// Conversion of contiguous arrays between dtypes.
#pragma once

#include "kernels/device/elements.cuh"

namespace hybridnet::device {

struct ConvertArguments {  // the same in device/convert.cc
  const void* in;
  void* out;
  int64_t n;
};

template <class From, class To>
__device__ void convert_array(const ConvertArguments& a) {
  const From* in = static_cast<const From*>(a.in);
  To* out = static_cast<To*>(a.out);
  for (int64_t i = first(); i < a.n; i += step()) out[i] = convert<To>(in[i]);
}

}  // namespace hybridnet::device
