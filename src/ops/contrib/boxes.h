// Axis-aligned boxes: conversion from four numbers, areas, overlaps.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet::ops {

enum class BoxFormat : int32_t {
  kCorner,  // left, top, right, bottom
  kCenter,  // x and y of the center, width, height
};

template <typename A>
struct Box {
  A left, top, right, bottom;

  template <typename T>
  static Box load(const T* p, BoxFormat format) {
    const A a = static_cast<A>(p[0]), b = static_cast<A>(p[1]), c = static_cast<A>(p[2]), d = static_cast<A>(p[3]);
    if (format == BoxFormat::kCorner) return {a, b, c, d};
    return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
  }
  A width() const { return right - left; }
  A height() const { return bottom - top; }
  // 0 for an inverted box.
  A area() const { return width() < 0 || height() < 0 ? A(0) : width() * height(); }
};

template <typename A>
A intersection(const Box<A>& a, const Box<A>& b) {
  const A w = std::min(a.right, b.right) - std::max(a.left, b.left),
          h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  return w > 0 && h > 0 ? w * h : A(0);
}

// Intersection over union; 0 for disjoint boxes, empty ones included.
template <typename A>
A overlap(const Box<A>& a, const Box<A>& b) {
  const A common = intersection(a, b);
  return common > 0 ? common / (a.area() + b.area() - common) : A(0);
}

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
