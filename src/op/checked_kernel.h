// HYBRIDNET_CUDA_CHECK=1: the kernel of an operator on a GPU, whose results are compared with those of the CPU's kernel
// on copies of the same inputs.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// False for code of users, which must not run twice.
bool can_be_checked(const Op& op);

// A run of the kernel that it returns waits for the GPU, and throws EngineError with operator, output, element and both
// values at the first element that differs by more than docs/gpu.md promises. Throws what linking throws.
Ref<Kernel> link_checked(const Op& op, const LinkContext& c, Ref<Kernel> kernel);

}  // namespace hybridnet
