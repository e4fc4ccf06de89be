// Layers of recurrent cells over a sequence, forward and backward: what the RNN operator computes.
//
// Packed parameters: for each layer, for each direction, the weights of the input (gates * hidden, inputs), of the
// state (gates * hidden, recurrent) and of the projection (projection, hidden) if there is one; then, in the same
// order, the biases of input and state, gates * hidden each. Gates: LSTM i, f, g, o; GRU r, z, n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/packed.h"
#include "kernels/rnn_cells.h"

namespace hybridnet::kernels {

enum class RnnMode : int32_t { kRelu, kTanh, kLstm, kGru };

struct RnnGeometry {
  RnnMode mode = RnnMode::kLstm;
  int64_t layers = 1, directions = 1;
  int64_t steps = 0, batch = 0, input = 0;
  int64_t hidden = 0;
  int64_t projection = 0;  // size of the projected state; 0: none
  CellClip clip;
  bool masked = false;  // examples have lengths of their own
  double dropout = 0;   // probability, between layers

  int64_t gates() const { return mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1; }
  int64_t gate_size() const { return gates() * hidden; }
  int64_t recurrent() const { return projection > 0 ? projection : hidden; }  // size of the state that is fed back
  int64_t output() const { return directions * recurrent(); }
  int64_t layer_input(int64_t layer) const { return layer == 0 ? input : output(); }
  int64_t positions() const { return steps * batch; }
  int64_t cells() const { return layers * directions; }
  // Are there enough steps to pay for packing the recurrent weights?
  bool packs_weights() const { return gates() > 1 && steps >= 4; }
  // Whether each step multiplies its input, too, instead of one product of all steps ahead of them.
  bool steps_take_inputs() const;
  // Whether the gradients of states and inputs come from packed weights.
  bool packs_gradients() const;
  int64_t max_layer_input() const { return layers > 1 ? std::max(input, output()) : input; }

  // Offsets into the packed parameters.
  struct CellParameters {
    int64_t i2h, h2h, h2r, i2h_bias, h2h_bias;
  };
  CellParameters parameters_of(int64_t layer, int64_t direction) const;
  int64_t parameter_count() const;

  // What the backward pass needs of the forward pass, in elements. Per cell: activations of the gates, cell states
  // (LSTM) or the recurrent part of n (GRU), and states if masked (otherwise they are the outputs). Per layer but the
  // last: its outputs and the dropout multipliers.
  struct Reserve {
    int64_t gates, extra, states;
  };
  Reserve reserve_of(int64_t layer, int64_t direction) const;
  int64_t layer_output_offset(int64_t layer) const;
  int64_t multiplier_offset(int64_t layer) const;
  int64_t reserve_size() const;

  // Whether steps read nothing of the parameters but what pack_rnn_parameters() writes.
  bool reads_packed_alone() const { return steps_take_inputs() && projection == 0; }
  int64_t packed_offset(int64_t layer, int64_t direction) const;  // of a cell; elements
  int64_t packed_size() const { return packed_offset(layers, 0); }

  // Elements. has_packed: the packed parameters are given.
  int64_t forward_workspace(bool has_packed = false) const;
  // Of the gates where no reserve keeps them: those of all steps where one product gives them their start, else of a
  // step; none of an LSTM, whose steps need no memory for them.
  int64_t unreserved_gates() const;
  // Elements that a forward pass without a reserve needs beside its workspace.
  int64_t unreserved_workspace() const;
  int64_t backward_workspace(bool over_reserve = false) const;
};

template <typename T>
struct RnnForward {
  const T *data, *parameters, *state, *cell;  // cell: LSTM
  const T* packed;                            // by pack_rnn_parameters; null: parameters are packed in each run
  const int64_t* lengths;                     // one per example, in [0, steps]; null if not masked
  T *out, *state_out, *cell_out;              // states may be null
  T* reserve;                                 // null: nothing is kept for a gradient
  T* workspace;
  T* unreserved;  // where there is no reserve: unreserved_workspace()
  bool drop;      // apply dropout
  RngKey rng;
};
// Where reads_packed_alone(): writes packed_size() elements.
void pack_rnn_parameters(const RnnGeometry& g, const float* parameters, float* packed);
void pack_rnn_parameters(const RnnGeometry& g, const double* parameters, double* packed);
// The matrices, which packed parameters hold as they were; of the biases they hold sums.
template <typename T>
std::vector<Unpacking> unpack_rnn_parameters(const RnnGeometry& g);
void rnn_forward(const RnnGeometry& g, const RnnForward<float>& a);
void rnn_forward(const RnnGeometry& g, const RnnForward<double>& a);

template <typename T>
struct RnnBackward {
  const T *data, *parameters, *state, *cell;
  const int64_t* lengths;
  const T *out, *reserve;
  const T *dout, *dstate_out, *dcell_out;   // the last two may be null: zero
  T *ddata, *dparameters, *dstate, *dcell;  // ddata may be null: not wanted
  T* dgates;  // null: in the workspace. Else as long as the reserve, and may be the reserve, whose gates are lost then
  T* workspace;
  bool drop;
};
void rnn_backward(const RnnGeometry& g, const RnnBackward<float>& a);
void rnn_backward(const RnnGeometry& g, const RnnBackward<double>& a);

}  // namespace hybridnet::kernels
