// The parameters of kernels of formulas (kernels/device/formula.cuh).
#pragma once

#include <cstdint>

namespace hybridnet::device {

template <class F>
struct FormulaArguments {
  const void* in;
  void* out;
  int64_t n;
  F formula;
};

}  // namespace hybridnet::device
