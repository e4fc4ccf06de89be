// Gradients of products over axes.
#pragma once

#include "ops/reduce/axes.h"

namespace hybridnet::ops {

// The gradient of x, whose shape is `shape`, from the gradient dy of the product of x over axes (bits).
Value product_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes);
// The same if NaN is treated as 1.
Value nanproduct_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes);

}  // namespace hybridnet::ops
