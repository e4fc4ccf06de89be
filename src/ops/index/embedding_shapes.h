// Shapes of Embedding and of its form for bytes.
#pragma once

#include "hybridnet/inference.h"

namespace hybridnet::ops {

// (indices..., weight of input_dim rows) -> (indices..., output_dim)
inline void infer_embedding_shapes(InferContext& c, int64_t input_dim, int64_t output_dim) {
  c.set_in_shape(1, Shape({input_dim, output_dim}));
  if (c.in_shape(0).rank_known()) {
    Shape out = c.in_shape(0);
    out.push_back(output_dim);
    c.set_out_shape(0, out);
  }
  if (c.out_shape(0).ndim() >= 1) {
    const std::span<const int64_t> out = c.out_shape(0).dims();
    c.set_in_shape(0, Shape(out.first(out.size() - 1)));
  }
}

}  // namespace hybridnet::ops
