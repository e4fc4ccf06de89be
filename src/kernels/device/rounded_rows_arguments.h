// Arguments of the kernels of rounded_rows.cuh.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct RoundedRowsArguments {
  const float* rows;
  float* out;
  int64_t count, depth;
};

}  // namespace hybridnet::device
