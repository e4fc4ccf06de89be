// Reductions of NumPy's interface by means of classic ones: parameters, and support for an empty tuple of axes.
#pragma once

#include "ops/numpy/promote.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {

template <typename Schema, typename P>
void describe_axes(Schema& schema, std::optional<Tuple> P::*axis, bool P::*keepdims) {
  schema.field("axis", axis)
      .none_by_default()
      .doc("Axis or axes to reduce; negative ones count from the end; None reduces all, () none.");
  schema.field("keepdims", keepdims).default_value(false).doc("Keep reduced axes with size 1.");
}

using Axes = std::optional<Tuple>;

inline bool reduces_nothing(const Axes& axis) { return axis && axis->ndim() == 0; }

// A classic reduction; () reduces no axis, and a reduction of all axes returns a scalar.
inline Value reduce(const OpRef& classic, const Value& a, const Axes& axis, bool keepdims) {
  if (reduces_nothing(axis)) return a;
  const Shape& shape = spec_of(a).shape;
  const uint32_t axes = reduced_axes(axis, false, shape.ndim());
  const AttrValue which = axis ? AttrValue(*axis) : AttrValue();
  if (keepdims) return shape.ndim() == 0 ? a : call(classic, {a}, {{"axis", which}, {"keepdims", true}});
  return without_axes_left(call(classic, {a}, {{"axis", which}}), shape.ndim() - axes_tuple(axes).ndim());
}

}  // namespace hybridnet::ops
