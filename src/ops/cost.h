// Sizes in costs: their products with each other and with parameters are computed in double, because they may exceed
// int64_t.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

inline double elements(const Shape& shape) { return static_cast<double>(shape.size()); }
inline double elements(const TensorSpec& spec) { return elements(spec.shape); }
inline double length(const TensorSpec& spec, int axis) { return static_cast<double>(spec.shape[axis]); }

}  // namespace hybridnet::ops
