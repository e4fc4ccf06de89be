// Kernels of formulas (kernels/functors/formulas.h): one array, one functor with its parameters.
#pragma once

#include "kernels/device/elements.cuh"
#include "kernels/device/formula_arguments.h"
#include "kernels/functors/formulas.h"

namespace hybridnet::device {

// C: the type of the computation.
template <class F, class T, class C>
__device__ inline void formula(const FormulaArguments<F>& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<T*>(a.out)[i] = convert<T>(a.formula(convert<C>(static_cast<const T*>(a.in)[i])));
}

}  // namespace hybridnet::device
