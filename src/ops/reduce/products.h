// Gradients of products over axes.
#pragma once

#include "ops/reduce/axes.h"

namespace hybridnet::ops {

// What the gradient dy of the product over axes (bits) is for x, whose shape is `shape`.
Value product_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes);
// The same where NaN counts as 1.
Value nanproduct_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes);

}  // namespace hybridnet::ops
