// What a target shape with MXNet's codes means for a given shape.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

// Codes in `target`: 0 copies a size, -1 is inferred from the rest (once), -2 copies all remaining sizes, -3 multiplies
// two consecutive sizes, -4 splits a size into the two that follow (one of them may be -1). `reverse` reads both from
// the right. Sizes of `from` may be unknown; what follows from them stays unknown. Throws ParamError for codes that do
// not fit, ShapeError where sizes do not multiply up.
Shape apply_reshape_codes(const Shape& from, const Tuple& target, bool reverse);

// Kernel of every op whose output is its first input under another shape.
void copy_first_input(const KernelArgs& args);

}  // namespace hybridnet::ops
