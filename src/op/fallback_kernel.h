// Operators without a form for GPUs: their inputs are copied to the CPU, whose kernel runs, and the outputs are copied
// back. Each operator is said once (HYBRIDNET_GPU_FALLBACK).
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// Links the CPU's kernel of a use on a GPU. Throws what linking throws; a run throws UnsupportedError with
// HYBRIDNET_GPU_FALLBACK=error.
Ref<Kernel> link_fallback(const Op& op, const LinkContext& c);

// The same for a kernel that was linked for the CPU.
Ref<Kernel> make_fallback(const std::string& name, Ref<Kernel> kernel);

// Warns once per operator, or throws, as HYBRIDNET_GPU_FALLBACK says.
void note_fallback(const std::string& name);

}  // namespace hybridnet
