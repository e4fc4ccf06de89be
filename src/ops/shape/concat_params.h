// Parameters of Concat, also for operators that are defined by means of it.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

struct ConcatParams {
  int32_t num_args, dim;
  static void describe(ParamSchema<ConcatParams>& schema) {
    schema.field("num_args", &ConcatParams::num_args).range(1, 1 << 24).doc("Number of inputs.");
    schema.field("dim", &ConcatParams::dim).default_value(1).doc("The axis along which inputs are joined.");
  }
};

}  // namespace hybridnet::ops
