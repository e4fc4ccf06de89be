// The gradient that take, Embedding and related operators share.
#pragma once

#include "hybridnet/op.h"
#include "kernels/index/indices.h"

namespace hybridnet::ops {

// Parameters of the internal operator _backward_take (output_grad, indices), which adds rows of output_grad to zeros of
// `shape`.
struct TakeGradParams {
  int32_t axis;
  kernels::IndexMode mode;
  Tuple shape;
  static void describe(ParamSchema<TakeGradParams>& schema) {
    schema.field("axis", &TakeGradParams::axis).at_least(0).doc("The indexed axis of the output.");
    schema.field("mode", &TakeGradParams::mode)
        .choice("clip", kernels::IndexMode::kClip)
        .choice("wrap", kernels::IndexMode::kWrap)
        .choice("raise", kernels::IndexMode::kRaise)
        .default_value("clip")
        .doc("Handling of an index out of range.");
    schema.field("shape", &TakeGradParams::shape).doc("Shape of the output.");
  }
};

// The gradient of taking rows `indices` along `axis` from a tensor of shape `from`.
Value add_rows(const Value& output_grad, const Value& indices, int axis, kernels::IndexMode mode, const Shape& from);

}  // namespace hybridnet::ops
