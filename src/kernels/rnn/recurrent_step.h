// One time step of an LSTM or GRU layer in one function: the product of the state with its weights, kept in registers,
// and the cell's arithmetic. The weights are packed once for a whole sequence. float32 and float64. Uses the cores of
// the calling thread; the bits do not depend on their number.
#pragma once

#include <cstdint>

#include "kernels/rnn/rnn_cells.h"

namespace hybridnet::kernels {

// The number of elements of packed weights.
inline int64_t packed_recurrent_size(int64_t gates, int64_t hidden, int64_t recurrent) {
  return gates * hidden * recurrent;
}

// packed = weights (gates * hidden, recurrent) in the order in which steps read them.
void pack_recurrent(int gates, int64_t hidden, int64_t recurrent, const float* weights, float* packed);
void pack_recurrent(int gates, int64_t hidden, int64_t recurrent, const double* weights, double* packed);
// The inverse, with the same bits.
void unpack_recurrent(int gates, int64_t hidden, int64_t recurrent, const float* packed, float* weights);
void unpack_recurrent(int gates, int64_t hidden, int64_t recurrent, const double* packed, double* weights);

// The input of a step that also multiplies the input. Without weights, s.gates already contains the contribution of the
// input, and of the biases except those in s.
template <typename T>
struct StepInput {
  const T* packed = nullptr;  // by pack_recurrent
  int64_t size = 0;
  const T* data = nullptr;  // (rows, size)
};

// state (rows, recurrent): the state before the step. s.gates receives activations.
void lstm_step(const float* packed, int64_t recurrent, const float* state, const LstmStep<float>& s,
               const StepInput<float>& input = {});
void lstm_step(const double* packed, int64_t recurrent, const double* state, const LstmStep<double>& s,
               const StepInput<double>& input = {});
// s.recurrent is not read.
void gru_step(const float* packed, int64_t recurrent, const float* state, const GruStep<float>& s,
              const StepInput<float>& input = {});
void gru_step(const double* packed, int64_t recurrent, const double* state, const GruStep<double>& s,
              const StepInput<double>& input = {});

}  // namespace hybridnet::kernels
