// The parameters shape, dtype and ctx of operators that create tensors without inputs.
#pragma once

#include <string>

#include "hybridnet/op.h"

namespace hybridnet::ops {

// The output shape that a `shape` parameter defines. Without NumPy shape semantics a size of 0 means unknown: it is
// inferred from the use of the output (begin states of recurrent layers are written this way).
inline Shape shape_from_param(const Tuple& given) {
  Shape shape = given;
  if (is_np_shape()) return shape;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == 0) shape[i] = kUnknownDim;
  }
  return shape;
}

// Merges the parameter into output i.
inline void set_out_from_shape_param(InferContext& c, int i, const Tuple& given) {
  for (int64_t size : given) {
    if (size >= 0) continue;
    if (size == kUnknownDim) continue;
    throw ParamError({.input = "shape", .expected = "sizes that are not negative", .given = given.str()});
  }
  c.set_out_shape(i, shape_from_param(given));
}

template <typename P, typename Schema>
void describe_ctx(Schema& schema) {
  schema.field("ctx", &P::ctx).default_value("").hidden().doc("Device of an imperative result, such as cpu(0).");
}

}  // namespace hybridnet::ops
