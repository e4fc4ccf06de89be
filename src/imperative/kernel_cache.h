// Linked kernels of imperative calls, found again by signature.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// The kernel for this use of op: its only one if it needs no linking, else from the cache, else linked now.
// `owner` keeps a linked kernel alive; it stays null for stateless ones.
Kernel* find_kernel(const Op& op, const ParamsPtr& params, std::span<const TensorSpec> in,
                    std::span<const TensorSpec> out, Device device, bool train, Ref<Kernel>* owner);

}  // namespace hybridnet
