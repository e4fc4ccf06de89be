// Axis-aligned boxes: conversion from four numbers, areas, overlaps.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/functors/boxes.h"

namespace hybridnet::ops {

using kernels::Box, kernels::BoxFormat, kernels::Extent, kernels::intersection, kernels::overlap;

template <typename P, typename M>
auto box_format_field(ParamSchema<P>& schema, const char* name, M P::*member) {
  return schema.field(name, member).choice("corner", BoxFormat::kCorner).choice("center", BoxFormat::kCenter);
}

// Requires that axis `axis` of input i has the given size. `because` is the reason in the ShapeError.
inline void require_axis_size(const InferContext& c, int i, int axis, int64_t size, const char* because) {
  const Shape& shape = c.in_shape(i);
  if (!shape.rank_known() || shape[axis] == kUnknownDim || shape[axis] == size) return;
  throw ShapeError({.input = c.input_name(i),
                    .expected = std::to_string(size) + " along axis " + std::to_string(axis),
                    .given = "shape " + shape.str(),
                    .because = because});
}

inline void require_ndim(const InferContext& c, int i, int ndim, const char* axes) {
  const Shape& shape = c.in_shape(i);
  if (!shape.rank_known() || shape.ndim() == ndim) return;
  throw ShapeError({.input = c.input_name(i),
                    .expected = std::to_string(ndim) + " dimensions: " + axes,
                    .given = "shape " + shape.str()});
}

inline void check_variances(const std::vector<double>& variances) {
  if (variances.size() == 4) return;
  throw ParamError({.input = "variances",
                    .expected = "4 numbers: of x, y, width and height",
                    .given = std::to_string(variances.size())});
}

}  // namespace hybridnet::ops
