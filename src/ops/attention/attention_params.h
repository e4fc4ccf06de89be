// Parameters of the two matrix products of attention, in their general form.
#pragma once

#include "hybridnet/params.h"

namespace hybridnet::ops {

struct ScoresParams {
  int32_t heads, parts_a = 1, part_a = 0, parts_b = 1, part_b = 0;
  double scale = 1.0;
  static void describe(ParamSchema<ScoresParams>& schema) {
    schema.field("heads", &ScoresParams::heads).at_least(1).doc("Number of heads.");
    schema.field("parts_a", &ScoresParams::parts_a).default_value(1).at_least(1).doc("Vectors per head in a.");
    schema.field("part_a", &ScoresParams::part_a).default_value(0).at_least(0).doc("Index of the vector of a to use.");
    schema.field("parts_b", &ScoresParams::parts_b).default_value(1).at_least(1).doc("Vectors per head in b.");
    schema.field("part_b", &ScoresParams::part_b).default_value(0).at_least(0).doc("Index of the vector of b to use.");
    schema.field("scale", &ScoresParams::scale).default_value(1.0).doc("Factor of the products.");
  }
};

struct MixParams {
  int32_t heads;
  bool transpose = false;
  int32_t parts_values = 1, part_values = 0, parts_out = 1, part_out = 0;
  double scale = 1.0;
  static void describe(ParamSchema<MixParams>& schema) {
    schema.field("heads", &MixParams::heads).at_least(1).doc("Number of heads.");
    schema.field("transpose", &MixParams::transpose).default_value(false).doc("Transpose the scores.");
    schema.field("parts_values", &MixParams::parts_values)
        .default_value(1)
        .at_least(1)
        .doc("Vectors per head in values.");
    schema.field("part_values", &MixParams::part_values)
        .default_value(0)
        .at_least(0)
        .doc("Index of the vector of values to use.");
    schema.field("parts_out", &MixParams::parts_out)
        .default_value(1)
        .at_least(1)
        .doc("Vectors per head in the output.");
    schema.field("part_out", &MixParams::part_out)
        .default_value(0)
        .at_least(0)
        .doc("Index of the vector of the output to write; the others are zero.");
    schema.field("scale", &MixParams::scale).default_value(1.0).doc("Factor of the products.");
  }
};

}  // namespace hybridnet::ops
