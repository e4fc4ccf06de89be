// The parameters of the kernels of softmax.cuh, layer_norm.cuh and channels.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Rows along the middle axis of (outer, length, inner).
struct SoftmaxArguments {
  const void *x, *dy;  // in a gradient: y, dy
  void* out;
  const int64_t* lengths;  // null: all rows are whole
  const int64_t* index;    // the picked element of each row
  void *picked, *total;
  int64_t rows, length, inner;
  double scale;
  int32_t log;
};

struct NormArguments {
  const void *x, *dy, *gamma, *beta;
  const void *mean, *std;  // for a gradient
  void *y, *mean_out, *std_out;
  int64_t rows, width;
  double eps;
  // The residual sum: x = kept(x) + addend; sum receives it.
  const void* addend;
  void* sum;
  double keep;
  uint64_t seed, stream;
  const uint64_t* key;  // seed and stream in memory of the device; null: those above
  // Gradients; y receives the gradient of x.
  const void* of_sum;
  void* of_data;
  void *dgamma, *dbeta, *partial_gamma, *partial_beta;
  int64_t blocks, block_rows;
};

// (outer, channels, inner); blocks as in kernels/norm/batch_norm.cc.
struct ChannelArguments {
  const void *x, *dy, *mean, *scale, *shift;
  const void *factor, *offset, *slope;
  void *out, *first, *second;            // first, second: the two results of each channel
  void *partial_first, *partial_second;  // (block, channel)
  int64_t outer, channels, inner;
  int64_t blocks, block_rows, split;  // block_rows: rows (channels-last) or elements; split: blocks of a plane
  int32_t relu;
};

}  // namespace hybridnet::device
