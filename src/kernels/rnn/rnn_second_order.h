// The derivative of rnn_backward: the change of a layer's gradients if its inputs change along a direction. For the
// gradient of a sum of outputs, this is the product of its (symmetric) second derivatives with the direction.
#pragma once

#include <cstdint>

#include "kernels/rnn/rnn.h"

namespace hybridnet::kernels {

template <typename T>
struct RnnSecondOrder {
  const T *data, *parameters, *state, *cell;
  const T *ddata, *dparameters, *dstate, *dcell;  // the direction, with the shapes of the inputs above
  const int64_t* lengths;
  const T* reserve;                            // from the forward pass: the mask of dropped outputs
  const T *out_grad, *state_grad, *cell_grad;  // gradients of the outputs; the last two may be null: zero
  bool drop;

  T *data_result, *parameters_result, *state_result, *cell_result;  // slopes of the gradients; cell: LSTM
  T *out_slope, *state_slope, *cell_slope;                          // slopes of the outputs; the last two may be null
};
void rnn_second_order(const RnnGeometry& g, const RnnSecondOrder<float>& a);
void rnn_second_order(const RnnGeometry& g, const RnnSecondOrder<double>& a);

}  // namespace hybridnet::kernels
