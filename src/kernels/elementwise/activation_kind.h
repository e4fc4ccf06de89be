// The activation functions that a parameter selects.
#pragma once

#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

enum class ActivationKind : int32_t {
  kNone,
  kRelu,
  kSigmoid,
  kTanh,
  kSoftRelu,
  kSoftSign,
  kGelu,
  kGeluTanh,
  kSilu,
  kClip,
  kElu,
  kLeaky
};

const SpanLoops& loops_of(ActivationKind kind);  // kNone: a copy

}  // namespace hybridnet::kernels
