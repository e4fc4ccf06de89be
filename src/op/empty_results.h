// Uses of operators whose results have no elements.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// True if a run would write nothing and raise nothing, because there are no values to check. Such uses run no kernel:
// the other sizes of arrays without elements may be huge, and a kernel that loops over them would never end.
bool computes_nothing(const Op& op, std::span<const TensorSpec> in, std::span<const TensorSpec> out);

Ref<Kernel> make_empty_kernel();

}  // namespace hybridnet
