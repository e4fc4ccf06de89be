// The parameters of the kernels of convolution.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// A product for each group: out[row, column] = sum over depth of factor[row, depth] * windows[depth, column]. The
// windows are read from an image: one of its two axes runs over (image, point), the other over (channel, tap).
//   forward:       rows: filters,  columns: (image, output point), depth: (channel, tap);  image: x,  factor: w
//   data gradient: rows: channels, columns: (image, input point),  depth: (filter, tap);   image: dy, factor: w
//   weights:       rows: filters,  columns: (channel, tap),        depth: (image, output point); image: x, factor: dy
struct ConvArguments {
  const void *image, *factor;
  const void *bias, *addend;  // added to each row, to each element; null: none
  void* out;
  int64_t groups, rows, columns, depth;
  int64_t tiles_down, tiles_across, splits, split_depth;  // splits > 1: out receives the sum of each part of depth
  int64_t points[3], source[3];                           // sizes that points run over; sizes of an image
  int64_t kernel[3], stride[3], dilate[3], pad[3];
  int64_t taps, point_count, channels;    // channels of a group of the image
  int32_t taps_first;                     // (channel, tap) are in the order (tap, channel)
  int64_t image_n, image_c, image_inner;  // strides: of images, channels, points
  int64_t out_n, out_c, out_inner;
  // Element (row, depth) of a group: depth is (outer, inner) with factor_inner_size steps of inner.
  int64_t factor_group, factor_row, factor_outer, factor_inner, factor_inner_size;
};

struct JoinArguments {
  const void* parts;
  void* out;
  int64_t n, splits;
};

}  // namespace hybridnet::device
