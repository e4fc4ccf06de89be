// Axis-aligned boxes: conversion from four numbers, areas, overlaps. On CPUs and devices.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hybridnet::kernels {

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

// Center and size of a box.
template <typename A>
struct Extent {
  A x, y, w, h;
  template <typename T>
  static Extent load(const T* p, BoxFormat format) {
    const A a = static_cast<A>(p[0]), b = static_cast<A>(p[1]), c = static_cast<A>(p[2]), d = static_cast<A>(p[3]);
    if (format == BoxFormat::kCenter) return {a, b, c, d};
    return {a + (c - a) / 2, b + (d - b) / 2, c - a, d - b};
  }
};

}  // namespace hybridnet::kernels
