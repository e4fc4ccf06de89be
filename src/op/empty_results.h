// Uses of operators whose results have no elements.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// Whether a run would write nothing and raise nothing: nothing about values where there are none. Such uses run no
// kernel: one that walks over the other sizes of its arrays, which cost no memory and may be anything, would never end.
bool computes_nothing(const Op& op, std::span<const TensorSpec> in, std::span<const TensorSpec> out);

Ref<Kernel> make_empty_kernel();

}  // namespace hybridnet
