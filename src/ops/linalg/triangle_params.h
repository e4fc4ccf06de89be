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
        .doc("Transpose the triangular matrices.");
    schema.field("rightside", &TriangleParams::rightside)
        .default_value(false)
        .doc("The triangular matrix stands on the right.");
    schema.field("lower", &TriangleParams::lower)
        .default_value(true)
        .doc("Lower or upper triangle; the other one is not read.");
    schema.field("alpha", &TriangleParams::alpha).default_value(1.0).doc("Factor of the result.");
  }
};

// Keeps one triangle; the diagonal times a factor, everything else times another one.
struct KeepTriangleParams {
  bool lower;
  double diagonal, factor;
  static void describe(ParamSchema<KeepTriangleParams>& schema) {
    schema.field("lower", &KeepTriangleParams::lower).default_value(true).doc("Which triangle stays.");
    schema.field("diagonal", &KeepTriangleParams::diagonal).default_value(1.0).doc("Factor of the diagonal.");
    schema.field("factor", &KeepTriangleParams::factor)
        .default_value(1.0)
        .doc("Factor of the triangle beside the diagonal.");
  }
};

}  // namespace hybridnet::ops
