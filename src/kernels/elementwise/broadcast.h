// Elementwise functions over inputs of different, broadcastable shapes. Adjacent axes that can be merged for all inputs
// are merged first, so that the innermost loop is as long as possible; it is one call of a span function.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "hybridnet/base.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

// The mapping of up to kMaxOperands contiguous inputs to an output. Strides are in elements; 0 repeats.
struct BroadcastLayout {
  static constexpr int kMaxOperands = 4;
  int ndim = 0;  // >= 1, after merging
  int operands = 0;
  int64_t dims[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];
  int64_t inner() const { return dims[ndim - 1]; }
  int64_t rows() const;  // product of all but the innermost size
  int64_t inner_stride(int operand) const { return strides[operand][ndim - 1]; }
  bool whole(int operand) const;  // the operand has the output's size and order
};
// Shapes must broadcast to `out` by NumPy's rule (aligned at the last axis).
BroadcastLayout broadcast_layout(const Shape& out, std::initializer_list<const Shape*> inputs);

// out = f(a, b), broadcasting. Splits over cores. `out` may alias an input of the output's shape.
void apply_broadcast(const SpanLoops& loops, DType dtype, const void* a, const Shape& a_shape, const void* b,
                     const Shape& b_shape, void* out, const Shape& out_shape);

// out = f(a, b) != 0, broadcasting.
void apply_broadcast_predicate(const SpanLoops& loops, DType dtype, const void* a, const Shape& a_shape, const void* b,
                               const Shape& b_shape, bool* out, const Shape& out_shape);

// Copies rows [begin, end) of the layout's operand, repeated by its strides, to contiguous `out`. item_size: bytes.
void expand_rows(const BroadcastLayout& layout, int operand, const void* in, int64_t item_size, int64_t begin,
                 int64_t end, void* out);

// out = in, repeated to out_shape. Splits over cores.
void broadcast_copy(const void* in, const Shape& in_shape, int64_t item_size, void* out, const Shape& out_shape);

}  // namespace hybridnet::kernels
