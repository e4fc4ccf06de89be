// Layers of recurrent cells over a sequence, forward and backward: the computation of the RNN operator.
//
// Packed parameters: for each layer, for each direction, the weights of the input (gates * hidden, inputs), of the
// state (gates * hidden, recurrent) and of the projection (projection, hidden) if there is one; then, in the same
// order, the biases of input and state, gates * hidden each. Gates: LSTM i, f, g, o; GRU r, z, n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hybridnet/kernel.h"
#include "kernels/product/packed.h"
#include "kernels/rnn/rnn_cells.h"

namespace hybridnet::kernels {

enum class RnnMode : int32_t { kRelu, kTanh, kLstm, kGru };

struct RnnGeometry {
  RnnMode mode = RnnMode::kLstm;
  int64_t layers = 1, directions = 1;
  int64_t steps = 0, batch = 0, input = 0;
  int64_t hidden = 0;
  int64_t projection = 0;  // size of the projected state, or 0
  CellClip clip;
  bool masked = false;  // each example has its own length
  double dropout = 0;   // probability, between layers
  bool plain = false;   // weights are never packed: on a device

  int64_t gates() const { return mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1; }
  int64_t gate_size() const { return gates() * hidden; }
  int64_t recurrent() const { return projection > 0 ? projection : hidden; }  // size of the state that is fed back
  int64_t output() const { return directions * recurrent(); }
  int64_t layer_input(int64_t layer) const { return layer == 0 ? input : output(); }
  int64_t positions() const { return steps * batch; }
  int64_t cells() const { return layers * directions; }
  // True if there are enough steps to pay for packing the recurrent weights.
  bool packs_weights() const { return !plain && gates() > 1 && steps >= 4; }
  // True if each step also multiplies its input, instead of one product for all steps before them.
  bool steps_take_inputs() const;
  // True if the gradients of states and inputs are computed from packed weights.
  bool packs_gradients() const;
  int64_t max_layer_input() const { return layers > 1 ? std::max(input, output()) : input; }

  // Offsets into the packed parameters.
  struct CellParameters {
    int64_t i2h, h2h, h2r, i2h_bias, h2h_bias;
  };
  CellParameters parameters_of(int64_t layer, int64_t direction) const;
  int64_t parameter_count() const;

  // The results of the forward pass that the backward pass reads, in elements. Per cell: activations of the gates, cell
  // states (LSTM) or the recurrent part of n (GRU), and states if masked (otherwise they are the outputs). Per layer
  // but the last: its outputs and the dropout multipliers.
  struct Reserve {
    int64_t gates, extra, states;
  };
  Reserve reserve_of(int64_t layer, int64_t direction) const;
  int64_t layer_output_offset(int64_t layer) const;
  int64_t multiplier_offset(int64_t layer) const;
  int64_t reserve_size() const;

  // True if steps read only the part of the parameters that pack_rnn_parameters() writes.
  bool reads_packed_alone() const { return steps_take_inputs() && projection == 0; }
  int64_t packed_offset(int64_t layer, int64_t direction) const;  // a cell's offset, in elements
  int64_t packed_size() const { return packed_offset(layers, 0); }

  // Number of elements. has_packed: the packed parameters are given.
  int64_t forward_workspace(bool has_packed = false) const;
  // The elements for gates if there is no reserve: of all steps if one product computes their initial values, else of
  // one step; none for an LSTM whose steps multiply their inputs, since they need no memory for gates.
  int64_t unreserved_gates() const;
  // The elements that a forward pass without a reserve needs in addition to its workspace.
  int64_t unreserved_workspace() const;
  int64_t backward_workspace(bool over_reserve = false) const;
};

template <typename T>
struct RnnForward {
  const T *data, *parameters, *state, *cell;  // cell: LSTM
  const T* packed;                            // from pack_rnn_parameters(); null: parameters are packed in each run
  const int64_t* lengths;                     // one per example, in [0, steps]; read only if masked
  T *out, *state_out, *cell_out;              // states may be null
  T* reserve;                                 // null: nothing is saved for a gradient
  T* workspace;
  T* unreserved;  // unreserved_workspace() elements, if there is no reserve
  bool drop;      // apply dropout
  RngKey rng;
};
// Requires reads_packed_alone(). Writes packed_size() elements.
void pack_rnn_parameters(const RnnGeometry& g, const float* parameters, float* packed);
void pack_rnn_parameters(const RnnGeometry& g, const double* parameters, double* packed);
// Restores the matrices, which packed parameters contain unchanged; the biases cannot be restored: only their sums are
// packed.
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
  T *ddata, *dparameters, *dstate, *dcell;  // ddata may be null
  T* dgates;  // null: in the workspace; else as large as the reserve, which it may alias, overwriting its gates
  T* workspace;
  bool drop;
};
void rnn_backward(const RnnGeometry& g, const RnnBackward<float>& a);
void rnn_backward(const RnnGeometry& g, const RnnBackward<double>& a);

}  // namespace hybridnet::kernels
