// The parameters of the kernels of rows.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// A condition per row chooses the row of x or y.
struct RowChoiceArguments {
  const void *condition, *x, *y;
  void* out;
  int64_t n, row;
};

// -log(softmax(x)[label]) of each row, at most `most`.
struct CrossEntropyArguments {
  const void *x, *labels;
  double* losses;
  int64_t rows, classes;
  double most;
};

}  // namespace hybridnet::device
