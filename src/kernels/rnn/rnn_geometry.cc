#include "kernels/product/packed_product.h"
#include "kernels/rnn/rnn.h"

namespace hybridnet::kernels {

RnnGeometry::CellParameters RnnGeometry::parameters_of(int64_t layer, int64_t direction) const {
  const auto weights = [this](int64_t l) { return gate_size() * (layer_input(l) + recurrent()) + projection * hidden; };
  int64_t at = layer == 0 ? 0 : directions * weights(0) + (layer - 1) * directions * weights(1);
  at += direction * weights(layer);
  CellParameters p{};
  p.i2h = at;
  p.h2h = p.i2h + gate_size() * layer_input(layer);
  p.h2r = p.h2h + gate_size() * recurrent();
  const int64_t all_weights = directions * weights(0) + (layers - 1) * directions * weights(1);
  p.i2h_bias = all_weights + 2 * gate_size() * (layer * directions + direction);
  p.h2h_bias = p.i2h_bias + gate_size();
  return p;
}

int64_t RnnGeometry::parameter_count() const {
  return parameters_of(layers - 1, directions - 1).h2h_bias + gate_size();
}

RnnGeometry::Reserve RnnGeometry::reserve_of(int64_t layer, int64_t direction) const {
  const int64_t extra = mode == RnnMode::kLstm || mode == RnnMode::kGru ? hidden : 0;
  const int64_t per_cell = gate_size() + extra + (masked ? recurrent() : 0);
  Reserve r{};
  r.gates = (layer * directions + direction) * per_cell * positions();
  r.extra = r.gates + gate_size() * positions();
  r.states = r.extra + extra * positions();
  return r;
}

int64_t RnnGeometry::layer_output_offset(int64_t layer) const {
  return reserve_of(layers, 0).gates + layer * output() * positions() * (dropout > 0 ? 2 : 1);
}
int64_t RnnGeometry::multiplier_offset(int64_t layer) const {
  return layer_output_offset(layer) + output() * positions();
}
int64_t RnnGeometry::reserve_size() const { return layer_output_offset(layers - 1); }

// A step that multiplies its input reads the input's weights in each step: this does not pay for few examples.
bool RnnGeometry::steps_take_inputs() const { return packs_weights() && batch >= 12 && packed_products_pay(); }
bool RnnGeometry::packs_gradients() const { return !plain && steps >= 4 && batch >= 2 && packed_products_pay(); }

// Each cell stores: weights of the input and of the state, biases; for GRU also the state's bias of n.
int64_t RnnGeometry::packed_offset(int64_t layer, int64_t direction) const {
  const int64_t biases = mode == RnnMode::kGru ? gate_size() + hidden : gate_size();
  const auto cell = [&](int64_t l) { return gate_size() * (layer_input(l) + recurrent()) + biases; };
  if (layer == 0) return direction * cell(0);
  return directions * cell(0) + ((layer - 1) * directions + direction) * cell(1);
}

// The workspace holds: biases; states of this step and the one before, the product with the state (GRU), the hidden
// state before its projection, the dropped outputs of a layer, packed weights.
int64_t RnnGeometry::forward_workspace(bool has_packed) const {
  return gate_size() + (packs_weights() && !has_packed ? gate_size() * recurrent() : 0) +
         (steps_take_inputs() && !has_packed ? gate_size() * max_layer_input() : 0) + 2 * batch * recurrent() +
         (mode == RnnMode::kGru && !packs_weights() ? batch * gate_size() : 0) + (projection > 0 ? batch * hidden : 0) +
         (dropout > 0 ? positions() * output() : 0);
}

int64_t RnnGeometry::unreserved_gates() const {
  if (!steps_take_inputs()) return positions() * gate_size();
  return mode == RnnMode::kLstm ? 0 : batch * gate_size();
}

// The workspace holds: gates, cells of two steps, the outputs of two layers, states of all steps if masked.
int64_t RnnGeometry::unreserved_workspace() const {
  return unreserved_gates() + 2 * batch * hidden + std::min<int64_t>(layers - 1, 2) * positions() * output() +
         (masked ? positions() * recurrent() : 0);
}

// The workspace holds: gradients of the gates (twice for GRU), of two layers' inputs, of states, of cells, kept rows
// and copies of states, gradients of the projected states and the recomputed hidden states, the dropped outputs of a
// layer, and packed weights.
int64_t RnnGeometry::backward_workspace(bool over_reserve) const {
  const int64_t sequences = gate_size() * ((over_reserve ? 0 : 1) + (mode == RnnMode::kGru ? 1 : 0)) +
                            2 * output() * (layers > 1 ? 1 : 0) + (projection > 0 ? projection + hidden : 0) +
                            (dropout > 0 ? output() : 0);
  const int64_t packed = packs_gradients() ? gate_size() * std::max(recurrent(), max_layer_input()) : 0;
  return positions() * sequences + batch * (4 * recurrent() + 3 * hidden) + packed;
}

}  // namespace hybridnet::kernels
