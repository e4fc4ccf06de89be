// Products of attention over interleaved projections.
//
// A projection tensor (length, batch, heads * parts * size) holds `parts` adjacent vectors per head: queries, keys,
// values. One part of it is a strided (length, size) matrix per batch and head.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

struct PartOf {
  int64_t parts = 1, part = 0;
};

// Sizes of one part of a projection tensor.
struct Projection {
  int64_t length, batch, heads, parts, size;
  Projection(const Shape& s, int64_t heads, int64_t parts)
      : length(s[0]), batch(s[1]), heads(heads), parts(parts), size(heads * parts > 0 ? s[2] / (heads * parts) : 0) {}
  int64_t matrices() const { return batch * heads; }
  int64_t row() const { return matrices() * parts * size; }
  int64_t step() const { return parts * size; }  // between matrices
  int64_t offset(int64_t matrix, int64_t part) const { return matrix * step() + part * size; }
};

// out (batch * heads, length of a, length of b) = scale * a b^T, matrix by matrix.
void attention_scores(const TensorRef& a, PartOf part_a, const TensorRef& b, PartOf part_b, int64_t heads, double scale,
                      const TensorRef& out);

// One part of out = op(scores) values * scale, matrix by matrix; the other parts are set to zero.
void attention_mix(const TensorRef& scores, bool transpose, const TensorRef& values, PartOf part_values, int64_t heads,
                   double scale, const TensorRef& out, PartOf part_out);

// Requires that input i has the shape (length, batch, heads * parts * size).
void require_projection(const InferContext& c, int i, int64_t heads, int64_t parts);

}  // namespace hybridnet::ops
