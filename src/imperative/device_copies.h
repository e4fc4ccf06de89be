// Copies between devices as steps of the tape: the gradient goes back to the device of the values.
#pragma once

#include "hybridnet/imperative.h"

namespace hybridnet {

// A copy of an array on another device; recorded while autograd records.
NDArray copied_to_device(const NDArray& array, Device device);

// Copies into an array of another device (same spec), as an operator with `out` would.
void copy_into_device(const NDArray& from, const NDArray& to);

}  // namespace hybridnet
