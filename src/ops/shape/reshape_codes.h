// The shape defined by a target shape with MXNet's codes and the shape of the input.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

// Codes in `target`: 0 copies a size, -1 is inferred from the rest (once), -2 copies all remaining sizes, -3 multiplies
// two consecutive sizes, -4 splits a size into the two that follow (one of them may be -1). `reverse` reads both shapes
// from the right. Sizes of `from` may be unknown; sizes that depend on them stay unknown. Throws ParamError for invalid
// codes, ShapeError if the numbers of elements differ.
Shape apply_reshape_codes(const Shape& from, const Tuple& target, bool reverse);

// The kernel of every operator whose output is its first input with another shape.
void copy_first_input(const KernelArgs& args);

}  // namespace hybridnet::ops
