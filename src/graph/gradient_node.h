// `_gradient`: gradients inside a graph. The inputs of the node are the losses, then variables; its outputs are the
// gradients of the sum of all elements of the losses, one per variable. Differentiation replaces the node
// (passes/gradient/gradient.h), so that a training step is a graph like any other: it can be saved, and it works for
// all sizes.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

struct GradientSpec {
  int32_t num_losses = 0, num_args = 0;
  int num_variables() const { return num_args > num_losses ? num_args - num_losses : 0; }
  static void describe(ParamSchema<GradientSpec>& schema) {
    schema.field("num_losses", &GradientSpec::num_losses)
        .at_least(0)
        .doc("Number of losses, the first inputs; the others are the variables.");
    schema.field("num_args", &GradientSpec::num_args).default_value(0).hidden().doc("Number of inputs.");
  }
};

}  // namespace hybridnet
