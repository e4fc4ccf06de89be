// Kernels that exist for float and double.
#pragma once

#include <utility>

#include "hybridnet/kernel.h"

namespace hybridnet::ops {

// Makes a K<double> for float64 and a K<float> for every other dtype; 16-bit floats reach it as float32
// (OpBuilder::halves_through_float).
template <template <typename> class K, typename... Args>
Ref<Kernel> make_float_kernel(DType dtype, Args&&... args) {
  if (dtype == DType::kFloat64) return Ref<Kernel>(new K<double>(std::forward<Args>(args)...));
  return Ref<Kernel>(new K<float>(std::forward<Args>(args)...));
}

}  // namespace hybridnet::ops
