// Parameters of products and solves with triangular matrices.
#pragma once

#include "hybridnet/params.h"

namespace hybridnet::ops {

struct TriangleParams {
  bool transpose, rightside, lower;
  double alpha;
  static void describe(ParamSchema<TriangleParams>& schema) {
    schema.field("transpose", &TriangleParams::transpose)
        .default_value(false)
        .doc("Whether to transpose the triangular matrices.");
    schema.field("rightside", &TriangleParams::rightside)
        .default_value(false)
        .doc("Whether the triangular matrix is on the right.");
    schema.field("lower", &TriangleParams::lower)
        .default_value(true)
        .doc("Whether the lower triangle is used, else the upper one; the other triangle is not read.");
    schema.field("alpha", &TriangleParams::alpha).default_value(1.0).doc("Factor of the result.");
  }
};

// Keeps one triangle: the diagonal is multiplied by one factor, the rest of the triangle by another.
struct KeepTriangleParams {
  bool lower;
  double diagonal, factor;
  static void describe(ParamSchema<KeepTriangleParams>& schema) {
    schema.field("lower", &KeepTriangleParams::lower)
        .default_value(true)
        .doc("Whether the lower triangle is kept, else the upper one.");
    schema.field("diagonal", &KeepTriangleParams::diagonal).default_value(1.0).doc("Factor of the diagonal.");
    schema.field("factor", &KeepTriangleParams::factor)
        .default_value(1.0)
        .doc("Factor of the triangle without the diagonal.");
  }
};

}  // namespace hybridnet::ops
