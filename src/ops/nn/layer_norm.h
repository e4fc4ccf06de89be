// Functions that the operators of layer normalization share.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

// The gradients of `inputs` = (dy, data, gamma, mean, std) of _layer_norm_backward, given the gradients `arriving` at
// its three outputs; null is zero.
Values layer_norm_second_gradient(const Values& inputs, const Values& arriving);

int64_t layer_norm_cost_ns(const TensorSpec& data);

}  // namespace hybridnet::ops
