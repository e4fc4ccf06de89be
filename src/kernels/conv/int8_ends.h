// The end of convolutions of int8 data: the results that Int8ConvOptions describes, from 32-bit sums.
#pragma once

#include <cstdint>

#include "kernels/conv/int8_convolution.h"

namespace hybridnet::kernels {

// Results of one output position: those of `count` channels from `channel` on. The first is element `offset` of y, each
// next one is `step` elements later.
struct Int8EndRange {
  int64_t channel, count, offset, step;
};

// values: room for `count` floats; unused for kInt32.
void finish_sums(const Int8ConvOptions& options, const Int8ConvTensors& t, const Int8EndRange& range,
                 const int32_t* sums, float* values);

}  // namespace hybridnet::kernels
