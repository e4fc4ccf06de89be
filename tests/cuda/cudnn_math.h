// The arithmetic of cudnn.cc: convolutions and their gradients by their definition, summed in float64.
// Threads: any.
#pragma once

#include <cstdint>

#include "cudnn_parts.h"

namespace standin {

// The places of the tensors, and how an engine changes values.
struct ConvolutionRun {
  uint64_t w = 0, x = 0, y = 0;
  bool tf32 = false;  // factors are rounded to 10 bits after the leading one
  double error = 0;   // relative, of sums: that of a random order
  double offset = 0;  // added to sums: that of a transform
};

int64_t elements_of(const Problem::Tensor& tensor);  // with gaps
void convolve(const Problem& problem, const ConvolutionRun& run);

}  // namespace standin
