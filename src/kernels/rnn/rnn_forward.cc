#include <algorithm>
#include <utility>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/gemm.h"
#include "kernels/random/bernoulli.h"
#include "kernels/rnn/device_rnn.h"
#include "kernels/rnn/recurrent_step.h"
#include "kernels/rnn/rnn.h"

namespace hybridnet::kernels {
namespace {

template <typename T>
void copy(const T* from, int64_t n, T* to) {
  copy_bytes(from, to, n * static_cast<int64_t>(sizeof(T)));
}

// Adds the biases of input and state; in GRU, the state's bias of n stays separate.
template <typename T>
void add_biases(const RnnGeometry& g, const T* parameters, const RnnGeometry::CellParameters& p, T* sums) {
  const int64_t size = g.gate_size(), shared = g.mode == RnnMode::kGru ? 2 * g.hidden : size;
  const T *bias = parameters + p.i2h_bias, *state_bias = parameters + p.h2h_bias;
  if (device::current()) return on_device::add_rnn_biases(bias, state_bias, size, shared, sums);
  for (int64_t i = 0; i < size; ++i) sums[i] = i < shared ? bias[i] + state_bias[i] : bias[i];
}

template <typename T>
void pack_parameters(const RnnGeometry& g, const T* parameters, T* packed) {
  const int gates = static_cast<int>(g.gates());
  for (int64_t layer = 0; layer < g.layers; ++layer) {
    for (int64_t direction = 0; direction < g.directions; ++direction) {
      const auto p = g.parameters_of(layer, direction);
      T* to = packed + g.packed_offset(layer, direction);
      pack_recurrent(gates, g.hidden, g.layer_input(layer), parameters + p.i2h, to);
      to += g.gate_size() * g.layer_input(layer);
      pack_recurrent(gates, g.hidden, g.recurrent(), parameters + p.h2h, to);
      to += g.gate_size() * g.recurrent();
      add_biases(g, parameters, p, to);
      if (g.mode == RnnMode::kGru) copy(parameters + p.h2h_bias + 2 * g.hidden, g.hidden, to + g.gate_size());
    }
  }
}

template <typename T>
class Forward {
 public:
  Forward(const RnnGeometry& g, const RnnForward<T>& a) : g_(g), a_(a) {
    T* at = a.workspace;
    const auto take = [&at](int64_t n) { return std::exchange(at, at + n); };
    if (g.packs_weights() && !a.packed) packed_ = take(packed_recurrent_size(g.gates(), g.hidden, g.recurrent()));
    if (g.steps_take_inputs() && !a.packed)
      packed_input_ = take(packed_recurrent_size(g.gates(), g.hidden, g.max_layer_input()));
    bias_ = take(g.gate_size());
    states_[0] = take(g.batch * g.recurrent());
    states_[1] = take(g.batch * g.recurrent());
    if (g.mode == RnnMode::kGru && !g.packs_weights()) product_ = take(g.batch * g.gate_size());
    if (g.projection > 0) hidden_ = take(g.batch * g.hidden);
    if (g.dropout > 0) dropped_ = take(g.positions() * g.output());
    if (a.reserve) return;
    at = a.unreserved;
    if (g.unreserved_gates() > 0) gates_ = take(g.unreserved_gates());
    for (T*& extra : extra_) extra = take(g.batch * g.hidden);
    for (int64_t i = 0; i < std::min<int64_t>(g.layers - 1, 2); ++i)
      layer_outputs_[i] = take(g.positions() * g.output());
    if (g.masked) masked_states_ = take(g.positions() * g.recurrent());
  }

  void run() {
    const T* in = a_.data;
    for (int64_t layer = 0; layer < g_.layers; ++layer) {
      const bool last = layer == g_.layers - 1;
      T* out = last ? a_.out : output_of(layer);
      for (int64_t direction = 0; direction < g_.directions; ++direction) run_cell(layer, direction, in, out);
      in = !last && a_.drop ? drop(layer, out) : out;
    }
  }

 private:
  // The reserve contains the values that the gradient needs; without one, buffers are reused as soon as possible.
  T* output_of(int64_t layer) const {
    return a_.reserve ? a_.reserve + g_.layer_output_offset(layer) : layer_outputs_[layer % 2];
  }
  T* gates_at(const RnnGeometry::Reserve& r, int64_t t) const {
    if (a_.reserve) return a_.reserve + r.gates + t * g_.batch * g_.gate_size();
    return g_.steps_take_inputs() ? gates_ : gates_ + t * g_.batch * g_.gate_size();
  }
  // The cell state of a step is read by the next one.
  T* extra_at(const RnnGeometry::Reserve& r, int64_t t) const {
    return a_.reserve ? a_.reserve + r.extra + t * g_.batch * g_.hidden : extra_[t % 2];
  }

  // The inputs of the steps of a cell, except data.
  struct Weights {
    const T *input = nullptr, *state = nullptr;  // packed; null: products use the parameters
    const T* bias;
    const T* bias_of_n;  // GRU: bias of the state's part of n
  };
  Weights weights_of(int64_t layer, int64_t direction, const RnnGeometry::CellParameters& p) {
    const int64_t inputs = g_.layer_input(layer);
    Weights w;
    if (a_.packed) {
      w.input = a_.packed + g_.packed_offset(layer, direction);
      w.state = w.input + g_.gate_size() * inputs;
      w.bias = w.state + g_.gate_size() * g_.recurrent();
      w.bias_of_n = w.bias + g_.gate_size();
      return w;
    }
    add_biases(g_, a_.parameters, p, bias_);
    w.bias = bias_;
    w.bias_of_n = a_.parameters + p.h2h_bias + 2 * g_.hidden;
    const int gates = static_cast<int>(g_.gates());
    if (packed_input_) pack_recurrent(gates, g_.hidden, inputs, a_.parameters + p.i2h, packed_input_);
    if (packed_) pack_recurrent(gates, g_.hidden, g_.recurrent(), a_.parameters + p.h2h, packed_);
    w.input = packed_input_;
    w.state = packed_;
    return w;
  }

  // Initializes gates with the contributions of the input and the biases; packed steps of LSTM add the biases
  // themselves.
  void start_gates(int64_t layer, const RnnGeometry::CellParameters& p, const T* in, T* gates) const {
    const int64_t size = g_.gate_size(), inputs = g_.layer_input(layer);
    const bool with_bias = !(g_.packs_weights() && g_.mode == RnnMode::kLstm);
    if (with_bias && device::current()) {
      broadcast_copy(bias_, Shape{size}, sizeof(T), gates, Shape{g_.positions(), size});
    } else if (with_bias) {
      parallel_for(g_.positions(), 1.2 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) copy(bias_, size, gates + row * size);
      });
    }
    gemm(GemmShape::dense(false, true, g_.positions(), size, inputs), T(1), in, a_.parameters + p.i2h, T(with_bias),
         gates);
  }

  void run_cell(int64_t layer, int64_t direction, const T* in, T* out) {
    const auto p = g_.parameters_of(layer, direction);
    const auto r = g_.reserve_of(layer, direction);
    const int64_t cell = layer * g_.directions + direction, R = g_.recurrent(), H = g_.hidden, N = g_.batch;
    const Weights w = weights_of(layer, direction, p);
    const int64_t inputs = g_.layer_input(layer);
    if (!w.input) start_gates(layer, p, in, gates_at(r, 0));
    // If the states of all steps are contiguous, a step writes its state in place.
    T* states = a_.reserve ? a_.reserve + r.states : masked_states_;
    T* sequence = g_.masked ? states : g_.directions == 1 ? out : nullptr;
    const T* state = a_.state + cell * N * R;
    const T* cell_state = a_.cell ? a_.cell + cell * N * H : nullptr;
    for (int64_t i = 0; i < g_.steps; ++i) {
      const int64_t t = direction == 0 ? i : g_.steps - 1 - i;
      T* next = sequence ? sequence + t * N * R : states_[i % 2];
      T* extra = extra_at(r, t);
      T* next_cell = g_.mode == RnnMode::kLstm ? extra : nullptr;
      const StepInput<T> input{w.input, w.input ? inputs : 0, in + t * N * inputs};
      step(p, w, input, gates_at(r, t), extra, state, cell_state, next, next_cell);
      freeze_finished(t, state, cell_state, next, next_cell);
      if (next != out + t * N * R) write_output(t, direction, next, out);
      state = next;
      cell_state = next_cell;
    }
    if (a_.state_out) copy(state, N * R, a_.state_out + cell * N * R);
    if (a_.cell_out) copy(cell_state, N * H, a_.cell_out + cell * N * H);
  }

  void step(const RnnGeometry::CellParameters& p, const Weights& w, const StepInput<T>& input, T* gates, T* extra,
            const T* state, const T* cell_state, T* next, T* next_cell) {
    const int64_t N = g_.batch, H = g_.hidden, R = g_.recurrent();
    const GemmShape shape = GemmShape::dense(false, true, N, g_.gate_size(), R);
    const T* weights = a_.parameters + p.h2h;
    switch (g_.mode) {
      case RnnMode::kLstm: {
        T* hidden = g_.projection > 0 ? hidden_ : next;
        const LstmStep<T> s{N, H, gates, cell_state, next_cell, hidden, g_.clip, w.bias};
        if (w.state) {
          lstm_step(w.state, R, state, s, input);
        } else {
          gemm(shape, T(1), state, weights, T(1), gates);
          lstm_step(s);
        }
        if (g_.projection > 0)
          gemm(GemmShape::dense(false, true, N, R, H), T(1), hidden, a_.parameters + p.h2r, T(0), next);
        break;
      }
      case RnnMode::kGru: {
        const GruStep<T> s{N, H, gates, product_, w.bias_of_n, extra, state, next, w.bias};
        if (w.state) {
          gru_step(w.state, R, state, s, input);
        } else {
          gemm(shape, T(1), state, weights, T(0), product_);
          gru_step(s);
        }
        break;
      }
      case RnnMode::kRelu:
      case RnnMode::kTanh:
        gemm(shape, T(1), state, weights, T(1), gates);
        plain_step(g_.mode == RnnMode::kRelu, N * H, gates, next);
        break;
    }
  }

  // From step t = length on, an example keeps its state.
  void freeze_finished(int64_t t, const T* state, const T* cell_state, T* next, T* next_cell) const {
    if (!g_.masked) return;
    if (device::current()) {
      const on_device::StepRows rows{a_.lengths, t, g_.batch};
      on_device::set_finished(rows, g_.recurrent(), state, next);
      if (next_cell) on_device::set_finished(rows, g_.hidden, cell_state, next_cell);
      return;
    }
    for (int64_t n = 0; n < g_.batch; ++n) {
      if (t < a_.lengths[n]) continue;
      copy(state + n * g_.recurrent(), g_.recurrent(), next + n * g_.recurrent());
      if (next_cell) copy(cell_state + n * g_.hidden, g_.hidden, next_cell + n * g_.hidden);
    }
  }

  void write_output(int64_t t, int64_t direction, const T* state, T* out) const {
    const int64_t R = g_.recurrent();
    if (device::current()) {
      const on_device::StepRows rows{g_.masked ? a_.lengths : nullptr, t, g_.batch};
      return on_device::write_states(rows, R, state, g_.output(), out + t * g_.batch * g_.output() + direction * R);
    }
    for (int64_t n = 0; n < g_.batch; ++n) {
      T* to = out + (t * g_.batch + n) * g_.output() + direction * R;
      if (g_.masked && t >= a_.lengths[n])
        std::fill_n(to, R, T(0));
      else
        copy(state + n * R, R, to);
    }
  }

  const T* drop(int64_t layer, const T* out) {
    T* multipliers = a_.reserve ? a_.reserve + g_.multiplier_offset(layer) : dropped_;
    const int64_t n = g_.positions() * g_.output(), first = layer * ((n + 3) / 4 * 4);
    const T scale = static_cast<T>(g_.dropout < 1 ? 1 / (1 - g_.dropout) : 0);
    if (device::current()) {
      on_device::drop_outputs(a_.rng, 1 - g_.dropout, first, n, static_cast<double>(scale), out, multipliers, dropped_);
      return dropped_;
    }
    constexpr int64_t kTile = 4096;
    parallel_for((n + kTile - 1) / kTile, 5000.0, [&](int64_t begin, int64_t end) {
      uint8_t keep[kTile];
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t at = tile * kTile, count = std::min(n - at, kTile);
        fill_bernoulli(a_.rng, 1 - g_.dropout, first + at, count, keep);
        for (int64_t i = 0; i < count; ++i) multipliers[at + i] = keep[i] ? scale : T(0);
        for (int64_t i = 0; i < count; ++i) dropped_[at + i] = out[at + i] * multipliers[at + i];
      }
    });
    return dropped_;
  }

  const RnnGeometry& g_;
  const RnnForward<T>& a_;
  T *bias_, *states_[2];
  T *product_ = nullptr, *packed_ = nullptr, *packed_input_ = nullptr, *hidden_ = nullptr, *dropped_ = nullptr;
  // Without a reserve:
  T *gates_ = nullptr, *extra_[2] = {}, *layer_outputs_[2] = {}, *masked_states_ = nullptr;
};

}  // namespace

void pack_rnn_parameters(const RnnGeometry& g, const float* parameters, float* packed) {
  pack_parameters(g, parameters, packed);
}
void pack_rnn_parameters(const RnnGeometry& g, const double* parameters, double* packed) {
  pack_parameters(g, parameters, packed);
}
template <typename T>
std::vector<Unpacking> unpack_rnn_parameters(const RnnGeometry& g) {
  std::vector<Unpacking> parts;
  const auto add = [&](int64_t parameter, int64_t packed_at, int64_t inputs) {
    const auto write = [gates = static_cast<int>(g.gates()), hidden = g.hidden, packed_at, inputs](const void* packed,
                                                                                                   void* to) {
      unpack_recurrent(gates, hidden, inputs, static_cast<const T*>(packed) + packed_at, static_cast<T*>(to));
    };
    constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
    parts.push_back({parameter * kBytes, g.gate_size() * inputs * kBytes, write});
  };
  for (int64_t layer = 0; layer < g.layers; ++layer) {
    for (int64_t direction = 0; direction < g.directions; ++direction) {
      const auto p = g.parameters_of(layer, direction);
      const int64_t at = g.packed_offset(layer, direction);
      add(p.i2h, at, g.layer_input(layer));
      add(p.h2h, at + g.gate_size() * g.layer_input(layer), g.recurrent());
    }
  }
  return parts;
}
template std::vector<Unpacking> unpack_rnn_parameters<float>(const RnnGeometry& g);
template std::vector<Unpacking> unpack_rnn_parameters<double>(const RnnGeometry& g);

void rnn_forward(const RnnGeometry& g, const RnnForward<float>& a) { Forward<float>(g, a).run(); }
void rnn_forward(const RnnGeometry& g, const RnnForward<double>& a) { Forward<double>(g, a).run(); }

}  // namespace hybridnet::kernels
