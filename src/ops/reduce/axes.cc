#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {

const OpRef kSpread{"_spread"};

}  // namespace

void ReduceParams::describe(ParamSchema<ReduceParams>& schema) {
  schema.field("axis", &ReduceParams::axis)
      .none_by_default()
      .doc("Axis or axes to reduce; negative ones count from the end; None or () reduces all.");
  schema.field("keepdims", &ReduceParams::keepdims).default_value(false).doc("Keep reduced axes with size 1.");
  schema.field("exclude", &ReduceParams::exclude)
      .default_value(false)
      .doc("Whether to reduce the axes that are not listed.");
}

uint32_t reduced_axes(const std::optional<Tuple>& axis, bool exclude, int ndim) {
  const uint32_t all = (1u << ndim) - 1;
  if (!axis || axis->ndim() == 0) return all;
  uint32_t bits = 0;
  for (int64_t a : *axis) {
    const uint32_t bit = 1u << normalize_axis(a, ndim);
    if (bits & bit) {
      throw ParamError({.input = "axis", .expected = "different axes", .given = axis->str()});
    }
    bits |= bit;
  }
  return exclude ? all & ~bits : bits;
}

Shape kept_shape(const Shape& in, uint32_t axes) {
  Shape out = in;
  for (int i = 0; i < in.ndim(); ++i)
    if (axes >> i & 1u) out[i] = 1;
  return out;
}

Shape reduced_shape(const Shape& in, uint32_t axes, bool keepdims) {
  if (keepdims) return kept_shape(in, axes);
  Shape out = Shape::scalar();
  for (int i = 0; i < in.ndim(); ++i)
    if (!(axes >> i & 1u)) out.push_back(in[i]);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  return out;
}

int64_t reduced_count(const Shape& in, uint32_t axes) {
  int64_t count = 1;
  for (int i = 0; i < in.ndim(); ++i)
    if (axes >> i & 1u) count *= in[i];
  return count;
}

uint32_t renumbered_axes(uint32_t axes, std::span<const int> moved_to) {
  uint32_t now = 0;
  for (size_t axis = 0; axis < moved_to.size(); ++axis)
    if (axes >> axis & 1u) now |= 1u << moved_to[axis];
  return now;
}

bool keeps_order_without(uint32_t axes, std::span<const int> moved_to) {
  int last = -1;
  for (size_t axis = 0; axis < moved_to.size(); ++axis) {
    if (axes >> axis & 1u) continue;
    if (moved_to[axis] < last) return false;
    last = moved_to[axis];
  }
  return true;
}

void infer_reduce(const ReduceParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) {
    if ((!p.axis || p.axis->ndim() == 0) && !p.keepdims) c.set_out_shape(0, is_np_shape() ? Shape::scalar() : Shape{1});
    return;
  }
  c.set_out_shape(0, reduced_shape(in, reduced_axes(p.axis, p.exclude, in.ndim()), p.keepdims));
}

Tuple axes_tuple(uint32_t axes) {
  Tuple t = Tuple::scalar();
  for (int i = 0; i < kMaxDims; ++i)
    if (axes >> i & 1u) t.push_back(i);
  return t;
}

Value spread(const Value& reduced, const Shape& full, uint32_t axes) {
  if (!reduced || spec_of(reduced).shape == full) return reduced;
  return call(kSpread, {reduced}, {{"shape", AttrValue(full)}, {"axis", AttrValue(axes_tuple(axes))}});
}

}  // namespace hybridnet::ops
