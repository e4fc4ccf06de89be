// The element types that carry gradients, on the tape and in graphs alike.
#pragma once

#include "hybridnet/base.h"

namespace hybridnet {

// True if a gradient passes from a result of type `to` to an operand of type `from` whose gradient is wanted: always
// through floats, through integers if the operand has integers too. Truth values, indices and counts computed from
// floats carry none.
constexpr bool carries_gradient(DType from, DType to) {
  return is_floating(to) || from == to || (is_integer(from) && is_integer(to));
}

}  // namespace hybridnet
