#include "ops/broadcast/infer_broadcast.h"

#include <algorithm>

namespace hybridnet::ops {
namespace {

[[noreturn]] void cannot_broadcast(const Shape& lhs, const Shape& rhs, int64_t l, int64_t r) {
  throw ShapeError({.input = "rhs",
                    .expected = "a shape that broadcasts with lhs " + lhs.str(),
                    .given = rhs.str(),
                    .because = "sizes " + std::to_string(l) + " and " + std::to_string(r) +
                               " meet (aligned at the last axis); they must be equal or one of them 1",
                    .fix = "reshape one input, or use expand_dims / transpose to align the axes"});
}

int64_t broadcast_dim(const Shape& lhs, const Shape& rhs, int64_t l, int64_t r) {
  if (l == r || r == 1) return l;
  if (l == 1) return r;
  if (l == kUnknownDim) return r;  // r is not 1: l must be 1 or r
  if (r == kUnknownDim) return l;
  cannot_broadcast(lhs, rhs, l, r);
}

}  // namespace

namespace {
void infer_broadcast_shape(InferContext& c) {
  const TensorSpec& lhs = c.in(0);
  const TensorSpec& rhs = c.in(1);
  if (!lhs.shape.rank_known() || !rhs.shape.rank_known()) return;
  if (lhs.shape == rhs.shape) return c.set_out_shape(0, lhs.shape);
  const int l_rank = lhs.shape.ndim(), r_rank = rhs.shape.ndim(), rank = std::max(l_rank, r_rank);
  Shape out = Shape::unknown(rank);
  for (int i = 0; i < rank; ++i) {
    const int li = i - (rank - l_rank), ri = i - (rank - r_rank);
    out[i] = broadcast_dim(lhs.shape, rhs.shape, li < 0 ? 1 : lhs.shape[li], ri < 0 ? 1 : rhs.shape[ri]);
  }
  c.set_out_shape(0, out);
}
}  // namespace

void infer_broadcast_binary(InferContext& c) {
  if (c.in_dtype(0) != c.in_dtype(1) || c.in_dtype(0) == DType::kUnknown) c.unify_dtypes();
  c.set_out_dtype(0, c.in_dtype(0));
  infer_broadcast_shape(c);
}

void infer_broadcast_predicate(InferContext& c) {
  c.unify_dtypes({0, 1}, {});
  c.set_out_dtype(0, DType::kBool);
  infer_broadcast_shape(c);
}

}  // namespace hybridnet::ops
