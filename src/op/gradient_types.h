// Which element types carry gradients, on the tape and in graphs alike.
#pragma once

#include "hybridnet/base.h"

namespace hybridnet {

// Whether a result of type `to` has a gradient that reaches an operand of type `from` whose gradient is asked for.
// Floats always; whole numbers where the operand holds such too. Truth values, indices and counts made of floats have
// none.
constexpr bool carries_gradient(DType from, DType to) {
  return is_floating(to) || from == to || (is_integer(from) && is_integer(to));
}

}  // namespace hybridnet
