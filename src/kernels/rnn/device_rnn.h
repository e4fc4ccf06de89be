// The steps of recurrent cells in memory of a device: the forms of rnn_cells.h, and what the loops over steps do beside
// products, on device::current(), which must be set. T: float or double.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include "hybridnet/kernel.h"
#include "kernels/rnn/rnn_cells.h"

namespace hybridnet::kernels::on_device {

template <typename T>
void lstm_step(const LstmStep<T>& s);
template <typename T>
void lstm_backward_step(const LstmBackwardStep<T>& s);
template <typename T>
void lstm_hidden(int64_t rows, int64_t hidden, const T* gates, const T* c, T* h);
template <typename T>
void gru_step(const GruStep<T>& s);
template <typename T>
void gru_backward_step(const GruBackwardStep<T>& s);
template <typename T>
void plain_step(bool relu, int64_t n, const T* gates, T* h);
template <typename T>
void plain_backward_step(bool relu, int64_t n, const T* h, const T* dh, T* dgates);

// sums = bias + state_bias for the first `shared` elements, bias for the others.
template <typename T>
void add_rnn_biases(const T* bias, const T* state_bias, int64_t n, int64_t shared, T* sums);

// The examples of a step; lengths: null if none ends early. A row is finished if t >= lengths[row].
struct StepRows {
  const int64_t* lengths;
  int64_t t, rows;
};
// Finished rows of out become those of `from`, or 0 if it is null.
template <typename T>
void set_finished(const StepRows& s, int64_t width, const T* from, T* out);
// Copies states (rows, width) to rows of out that are stride apart; finished rows become 0.
template <typename T>
void write_states(const StepRows& s, int64_t width, const T* states, int64_t stride, T* out);
// out = a + rows that are stride apart.
template <typename T>
void add_strided(int64_t rows, int64_t width, const T* a, const T* strided, int64_t stride, T* out);
// multipliers = scale where elements of the dropout's mask are kept, else 0; out = in * multipliers.
template <typename T>
void drop_outputs(const RngKey& key, double keep, int64_t begin, int64_t n, double scale, const T* in, T* multipliers,
                  T* out);

}  // namespace hybridnet::kernels::on_device
