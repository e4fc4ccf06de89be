// Gather of individual elements along an axis, and its adjoint: the gradients of pick, topk and sort use them.
#pragma once

#include "hybridnet/op.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"

namespace hybridnet::ops {

// Parameters of the internal operators _gather_along_axis and _scatter_along_axis. One tensor is viewed as (outer,
// rows, inner), the other and the indices as (outer, count, inner).
struct AlongAxisParams {
  int64_t outer, rows, inner, count;
  kernels::IndexMode mode;
  Tuple shape;
  static void describe(ParamSchema<AlongAxisParams>& schema) {
    schema.field("outer", &AlongAxisParams::outer).at_least(0).doc("Product of the sizes before the axis.");
    schema.field("rows", &AlongAxisParams::rows).at_least(0).doc("Size of the indexed axis.");
    schema.field("inner", &AlongAxisParams::inner).at_least(0).doc("Product of the sizes after the axis.");
    schema.field("count", &AlongAxisParams::count).at_least(0).doc("Indices per position.");
    schema.field("mode", &AlongAxisParams::mode)
        .choice("clip", kernels::IndexMode::kClip)
        .choice("wrap", kernels::IndexMode::kWrap)
        .choice("raise", kernels::IndexMode::kRaise)
        .default_value("clip")
        .doc("Handling of an index out of range.");
    schema.field("shape", &AlongAxisParams::shape).doc("Shape of the output.");
  }
};

Value gather_along_axis(const Value& data, const Value& indices, kernels::RowLayout layout, int64_t count,
                        kernels::IndexMode mode, const Shape& out);
Value scatter_along_axis(const Value& grads, const Value& indices, kernels::RowLayout layout, int64_t count,
                         kernels::IndexMode mode, const Shape& out);

}  // namespace hybridnet::ops
