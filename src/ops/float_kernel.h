// Kernels written as one function for float32 and float64.
#pragma once

#include "ops/through_float.h"

namespace hybridnet::ops {

// Links run() where input 0 (or, without inputs, output 0) is float32 or float64; float16 and bfloat16 go through
// float32.
template <typename P>
Ref<Kernel> link_float_kernel(const LinkContext& c, void (*run)(const P&, const KernelArgs&)) {
  const DType dtype = c.in.empty() ? c.out[0].dtype : c.in[0].dtype;
  if (is_half(dtype))
    return link_through_float(c, [run](const LinkContext& inner) { return link_float_kernel<P>(inner, run); });
  return function_kernel<P>(run);
}

// For OpBuilder::link.
template <typename P>
auto float_kernel(void (*run)(const P&, const KernelArgs&)) {
  return [run](const P&, const LinkContext& c) { return link_float_kernel<P>(c, run); };
}

}  // namespace hybridnet::ops
