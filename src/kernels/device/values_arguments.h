// The parameters of kernels that write values by position (kernels/device/values.cuh, sequences.cuh, sort.cuh,
// windows.cuh), as the library and the kernels see them.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// out[i] = start + i / repeat * step; the last element is `last` if has_last.
struct RangeArguments {
  void* out;
  int64_t n;
  double start, step, last;
  int64_t repeat, has_last;
};

// Ones on diagonal k of a matrix.
struct EyeArguments {
  void* out;
  int64_t rows, columns, k;
};

// out[i * axes ...]: the indices of element i along the chosen axes.
struct IndexArrayArguments {
  int64_t* out;
  int64_t n, axes;
  int64_t sizes[16], inner[16];  // for each chosen axis: its size, and the elements of the axes inside of it
};

struct OneHotArguments {
  const int64_t* ids;
  void* out;
  int64_t rows, depth;
  double on, off;
};

// Tensors of (time, batch, inner) or (batch, time, inner). lengths: null for full ones.
struct SequenceArguments {
  const int64_t* lengths;
  const void* in;
  void* out;
  int64_t time, batch, inner, time_first;
  double value;
};

// Rows of a tensor (outer, rows, inner). order, other: room for a position of each element.
struct SortArguments {
  const void* in;
  int64_t *order, *other;
  int64_t items, rows, inner, width, ascending;
  // Results for the first `count` of each row; any may be null.
  int64_t count;
  void *values, *indices, *mask;
  int64_t* positions;
};

// out[i * columns + places[i]] = values[i]
struct FillElementArguments {
  const int64_t* places;
  const void* values;
  void* out;
  int64_t rows, columns;
};

// Flat indices of `count` tuples (axis after axis in `tuples`), or the reverse.
struct RavelArguments {
  const int64_t* ids;
  void* out[16];  // unravel: for each axis
  int64_t count, ndim, sizes[16];
};

// a0 - a1 cos(step i) + a2 cos(2 step i); or base ^ (start + i step) if is_power, the last one base ^ stop if has_last.
struct CurveArguments {
  void* out;
  int64_t n, is_power, has_last;
  double a0, a1, a2, step, base, start, stop;
};

// Axes of a padded tensor, from the outermost; mode 0: edge, 1: reflect.
struct PadArguments {
  const void* in;
  void* out;
  int64_t n, ndim, reflects;
  int64_t in_size[16], out_size[16], before[16];
};

// (planes, 3 axes) and (planes, taps, positions).
struct WindowArguments {
  const void* in;
  void* out;
  int64_t planes;
  int64_t image[3], kernel[3], stride[3], dilate[3], pad[3], steps[3];
};

// The gradient of SoftmaxOutput, over (outer, length, inner). weights: null without them. scale: null if factor is all.
struct LabelArguments {
  const void *y, *labels, *weights;
  void* out;
  const int64_t* valid;  // the number of labels that divide; null: factor is divided already
  int64_t n, length, inner, linear, use_ignore, ignore;
  double factor, others, own;
};

// Counts labels that are not `ignore`.
struct CountArguments {
  const void* labels;
  int64_t* count;
  int64_t n, ignore;
};

// Rows of `size` elements; row % groups is the group.
struct GroupArguments {
  const void *x, *gamma, *beta, *mean, *spread, *dy;
  void *out, *first, *second;
  double* sums;  // two for each row
  int64_t rows, groups, size, variance;
  double eps;
};

// (batch, channels, inner): windows of 2 * half + 1 channels.
struct ChannelWindowArguments {
  const void* in;
  void *out, *norms;
  int64_t batch, channels, inner, half;
  double scale, knorm, beta;
};

}  // namespace hybridnet::device
