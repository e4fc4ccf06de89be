// float16 and bfloat16 for kernels written in float32: converts the inputs, runs the float32 kernel, converts the
// outputs.
#pragma once

#include <functional>

#include "hybridnet/declare.h"

namespace hybridnet {

// Calls `link` for the specs of `c` with float32 in place of float16 and bfloat16, and wraps the kernel in conversions.
// Declarations request it with OpBuilder::halves_through_float.
Ref<Kernel> link_through_float(const LinkContext& c, const std::function<Ref<Kernel>(const LinkContext&)>& link);

}  // namespace hybridnet
