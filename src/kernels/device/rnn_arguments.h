// The parameters of the kernels of rnn.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Arrays of (rows, hidden), gates of (rows, gates * hidden). The members are those of the steps of
// kernels/rnn/rnn_cells.h.
struct RnnCellArguments {
  const void *c_prev, *h_prev, *bias, *recurrent, *dh, *c_in, *gates_in;
  void *gates, *c, *h, *dc, *dgates, *drecurrent, *recurrent_n;
  int64_t rows, hidden;
  int32_t clips, clips_nan, relu;
  double low, high;
};

// Rows of `width` elements; those of `strided` begin stride apart.
struct RnnRowArguments {
  const void *a, *strided;
  void* out;
  const int64_t* lengths;  // steps of each row; null: the row goes on
  int64_t t, rows, width, stride;
};

struct RnnDropArguments {
  const void* in;
  const uint8_t* keep;
  void *multipliers, *out;
  int64_t n;
  double scale;
};

}  // namespace hybridnet::device
