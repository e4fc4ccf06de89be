#include "kernels/rnn/rnn_second_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/elementwise/dual_numbers.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

// Forward and backward pass over dual numbers, written for clarity: second derivatives of whole layers are rare.
template <typename T>
class SecondOrder {
 public:
  SecondOrder(const RnnGeometry& g, const RnnSecondOrder<T>& a)
      : g_(g), a_(a), cells_(static_cast<size_t>(g.cells())) {}

  void run() {
    DualSpan<const T> in{a_.data, a_.ddata};
    for (int64_t layer = 0; layer < g_.layers; ++layer) {
      inputs_.push_back(in);
      outputs_.emplace_back(g_.positions() * g_.output());
      const DualSpan<T> out = outputs_.back().span();
      for (int64_t d = 0; d < g_.directions; ++d) forward(layer, d, in, out);
      in = layer < g_.layers - 1 && a_.drop ? dropped(layer, out) : out;
    }
    std::copy_n(outputs_.back().span().slope, g_.positions() * g_.output(), a_.out_slope);
    DualArray<T> up(g_.positions() * g_.output());
    std::copy_n(a_.out_grad, g_.positions() * g_.output(), up.span().value);
    for (int64_t layer = g_.layers - 1; layer >= 0; --layer) {
      DualArray<T> down(g_.positions() * g_.layer_input(layer));
      for (int64_t d = 0; d < g_.directions; ++d) backward(layer, d, up.span(), down.span());
      if (layer > 0 && a_.drop) multiply(layer - 1, down.span());
      up = std::move(down);
    }
    std::copy_n(up.span().slope, g_.positions() * g_.input, a_.data_result);
  }

 private:
  // The values that one layer keeps from its forward pass in one direction.
  struct Cell {
    DualArray<T> gates, extra, hidden, states, before;  // before: the state before each step
    DualSpan<const T> first_cell;
  };

  Cell& cell(int64_t layer, int64_t d) { return cells_[static_cast<size_t>(layer * g_.directions + d)]; }
  DualSpan<const T> parameters(int64_t at) const { return {a_.parameters + at, a_.dparameters + at}; }
  int64_t step_at(int64_t i, int64_t d) const { return d == 0 ? i : g_.steps - 1 - i; }
  bool finished(int64_t t, int64_t n) const { return g_.masked && t >= a_.lengths[n]; }

  static void copy(DualSpan<const T> from, int64_t n, DualSpan<T> to) {
    std::copy_n(from.value, n, to.value);
    std::copy_n(from.slope, n, to.slope);
  }
  static void clear(DualSpan<T> to, int64_t n) {
    std::fill_n(to.value, n, T(0));
    std::fill_n(to.slope, n, T(0));
  }

  void multiply(int64_t layer, DualSpan<T> x) const {
    const T* by = a_.reserve + g_.multiplier_offset(layer);
    for (int64_t i = 0; i < g_.positions() * g_.output(); ++i) {
      x.value[i] *= by[i];
      x.slope[i] *= by[i];
    }
  }
  DualSpan<const T> dropped(int64_t layer, DualSpan<const T> out) {
    dropped_.emplace_back(g_.positions() * g_.output());
    copy(out, g_.positions() * g_.output(), dropped_.back().span());
    multiply(layer, dropped_.back().span());
    return dropped_.back().span();
  }

  // ---- forward
  void forward(int64_t layer, int64_t d, DualSpan<const T> in, DualSpan<T> out) {
    const int64_t N = g_.batch, R = g_.recurrent(), H = g_.hidden, G = g_.gate_size(),
                  index = layer * g_.directions + d;
    const auto p = g_.parameters_of(layer, d);
    Cell& c = cell(layer, d);
    c.gates = DualArray<T>(g_.positions() * G);
    c.extra = DualArray<T>(g_.positions() * H);
    c.hidden = DualArray<T>(g_.positions() * H);
    c.states = DualArray<T>(g_.positions() * R);
    c.before = DualArray<T>(g_.positions() * R);
    start_gates(p, in, g_.layer_input(layer), c.gates.span());
    DualSpan<const T> state{a_.state + index * N * R, a_.dstate + index * N * R}, cell_state;
    if (g_.mode == RnnMode::kLstm) cell_state = {a_.cell + index * N * H, a_.dcell + index * N * H};
    c.first_cell = cell_state;
    for (int64_t i = 0; i < g_.steps; ++i) {
      const int64_t t = step_at(i, d);
      const DualSpan<T> next = c.states.span() + t * N * R, extra = c.extra.span() + t * N * H;
      copy(state, N * R, c.before.span() + t * N * R);
      forward_step(p, c.gates.span() + t * N * G, state, cell_state, extra, c.hidden.span() + t * N * H, next);
      for (int64_t n = 0; n < N; ++n) {
        const bool ended = finished(t, n);
        if (ended) copy(state + n * R, R, next + n * R);
        if (ended && cell_state) copy(cell_state + n * H, H, extra + n * H);
        const DualSpan<T> to = out + ((t * N + n) * g_.output() + d * R);
        if (!ended) copy(next + n * R, R, to);
      }
      state = next;
      if (g_.mode == RnnMode::kLstm) cell_state = extra;
    }
    if (a_.state_slope) std::copy_n(state.slope, N * R, a_.state_slope + index * N * R);
    if (a_.cell_slope) std::copy_n(cell_state.slope, N * H, a_.cell_slope + index * N * H);
  }

  void start_gates(const RnnGeometry::CellParameters& p, DualSpan<const T> in, int64_t inputs,
                   DualSpan<T> gates) const {
    const int64_t G = g_.gate_size(), shared = g_.mode == RnnMode::kGru ? 2 * g_.hidden : G;
    const DualSpan<const T> bias = parameters(p.i2h_bias), state_bias = parameters(p.h2h_bias);
    for (int64_t row = 0; row < g_.positions(); ++row)
      for (int64_t i = 0; i < G; ++i)
        gates.set(row * G + i, i < shared ? bias.get(i) + state_bias.get(i) : bias.get(i));
    gemm(GemmShape::dense(false, true, g_.positions(), G, inputs), in, parameters(p.i2h), T(1), gates);
  }

  void forward_step(const RnnGeometry::CellParameters& p, DualSpan<T> gates, DualSpan<const T> state,
                    DualSpan<const T> cell_state, DualSpan<T> extra, DualSpan<T> hidden, DualSpan<T> next) const {
    const int64_t N = g_.batch, R = g_.recurrent(), H = g_.hidden, G = g_.gate_size();
    DualArray<T> memory(N * G);
    const DualSpan<T> product = memory.span();
    gemm(GemmShape::dense(false, true, N, G, R), state, parameters(p.h2h), T(0), product);
    const DualSpan<T> to = g_.projection > 0 ? hidden : next;
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t j = 0; j < H; ++j) {
        const int64_t at = n * H + j, gate = n * G + j;
        const auto sum = [&](int64_t k) { return gates.get(gate + k * H) + product.get(gate + k * H); };
        if (g_.mode == RnnMode::kLstm) {
          const Dual<T> i = sigmoid(sum(0)), f = sigmoid(sum(1)), g = tanh(sum(2)), o = sigmoid(sum(3));
          const Dual<T> c = clipped(f * cell_state.get(at) + i * g);
          store(gates, gate, {i, f, g, o});
          extra.set(at, c);
          to.set(at, o * tanh(c));
        } else if (g_.mode == RnnMode::kGru) {
          const Dual<T> r = sigmoid(sum(0)), z = sigmoid(sum(1));
          const Dual<T> recurrent = product.get(gate + 2 * H) + parameters(p.h2h_bias + 2 * H).get(j);
          const Dual<T> c = tanh(gates.get(gate + 2 * H) + r * recurrent);
          store(gates, gate, {r, z, c});
          extra.set(at, recurrent);
          to.set(at, one_minus(z) * c + z * state.get(at));
        } else {
          const Dual<T> x = sum(0);
          to.set(at, g_.mode == RnnMode::kTanh ? tanh(x) : x.value > 0 ? x : Dual<T>{});
        }
      }
    }
    if (g_.projection > 0)
      gemm(GemmShape::dense(false, true, N, R, H), DualSpan<const T>(hidden), parameters(p.h2r), T(0), next);
  }

  void store(DualSpan<T> gates, int64_t at, std::initializer_list<Dual<T>> activations) const {
    for (const Dual<T>& x : activations) {
      gates.set(at, x);
      at += g_.hidden;
    }
  }
  bool inside(T c) const {
    return !g_.clip.on || (c > static_cast<T>(g_.clip.low) && c < static_cast<T>(g_.clip.high));
  }
  Dual<T> clipped(Dual<T> c) const {
    if (inside(c.value) || (std::isnan(c.value) && !g_.clip.nan)) return c;
    return {std::isnan(c.value) ? static_cast<T>(g_.clip.low)
                                : std::clamp(c.value, static_cast<T>(g_.clip.low), static_cast<T>(g_.clip.high)),
            T(0)};
  }

  // ---- backward
  void backward(int64_t layer, int64_t d, DualSpan<const T> out_grad, DualSpan<T> down) {
    const int64_t N = g_.batch, R = g_.recurrent(), H = g_.hidden, G = g_.gate_size(), P = g_.positions();
    const int64_t index = layer * g_.directions + d, inputs = g_.layer_input(layer);
    const auto p = g_.parameters_of(layer, d);
    DualArray<T> gates_memory(P * G), recurrent_memory(g_.mode == RnnMode::kGru ? P * G : 0), projected_memory(P * R);
    DualArray<T> state_memory(N * R), cell_memory(N * H);
    const DualSpan<T> dgates = gates_memory.span(), dstate = state_memory.span(), dcell = cell_memory.span();
    const DualSpan<T> drecurrent = g_.mode == RnnMode::kGru ? recurrent_memory.span() : dgates;
    if (a_.state_grad) std::copy_n(a_.state_grad + index * N * R, N * R, dstate.value);
    if (a_.cell_grad) std::copy_n(a_.cell_grad + index * N * H, N * H, dcell.value);
    for (int64_t i = g_.steps - 1; i >= 0; --i) {
      const int64_t t = step_at(i, d);
      backward_step(layer, d, p, t, i == 0, out_grad, dstate, dcell, dgates + t * N * G, drecurrent + t * N * G,
                    projected_memory.span() + t * N * R);
    }
    std::copy_n(dstate.slope, N * R, a_.state_result + index * N * R);
    if (g_.mode == RnnMode::kLstm) std::copy_n(dcell.slope, N * H, a_.cell_result + index * N * H);

    Cell& c = cell(layer, d);
    T* result = a_.parameters_result;
    const DualSpan<const T> in = inputs_[static_cast<size_t>(layer)], dg = dgates, dr = drecurrent;
    gemm_slope(GemmShape::dense(true, false, G, inputs, P), dg, in, T(0), result + p.i2h);
    gemm_slope(GemmShape::dense(true, false, G, R, P), dr, DualSpan<const T>(c.before.span()), T(0), result + p.h2h);
    if (g_.projection > 0)
      gemm_slope(GemmShape::dense(true, false, R, H, P), DualSpan<const T>(projected_memory.span()),
                 DualSpan<const T>(c.hidden.span()), T(0), result + p.h2r);
    sum_rows(dg.slope, result + p.i2h_bias);
    sum_rows(dr.slope, result + p.h2h_bias);
    gemm(GemmShape::dense(false, false, P, inputs, G), dg, parameters(p.i2h), T(1), down);
  }

  void sum_rows(const T* rows, T* out) const {
    for (int64_t i = 0; i < g_.gate_size(); ++i) {
      double sum = 0;
      for (int64_t row = 0; row < g_.positions(); ++row) sum += static_cast<double>(rows[row * g_.gate_size() + i]);
      out[i] = static_cast<T>(sum);
    }
  }

  // Examples that have ended pass their gradients on unchanged; the gradients of their gates are zero.
  void backward_step(int64_t layer, int64_t d, const RnnGeometry::CellParameters& p, int64_t t, bool first,
                     DualSpan<const T> out_grad, DualSpan<T> dstate, DualSpan<T> dcell, DualSpan<T> dgates,
                     DualSpan<T> drecurrent, DualSpan<T> dprojected) {
    const int64_t N = g_.batch, R = g_.recurrent(), H = g_.hidden, G = g_.gate_size();
    DualArray<T> kept_state(N * R), kept_cell(N * H), up_memory(N * R), hidden_memory(N * H), through_memory(N * R);
    const DualSpan<T> up = up_memory.span(), through = through_memory.span();
    copy(dstate, N * R, kept_state.span());
    copy(dcell, N * H, kept_cell.span());
    for (int64_t n = 0; n < N; ++n) {
      if (finished(t, n)) {
        clear(dcell + n * H, H);
        continue;
      }
      for (int64_t k = 0; k < R; ++k)
        up.set(n * R + k, dstate.get(n * R + k) + out_grad.get((t * N + n) * g_.output() + d * R + k));
    }
    DualSpan<T> dhidden = up;
    if (g_.projection > 0) {
      copy(up, N * R, dprojected);
      dhidden = hidden_memory.span();
      gemm(GemmShape::dense(false, false, N, H, R), DualSpan<const T>(up), parameters(p.h2r), T(0), dhidden);
    }
    gate_gradients(cell(layer, d), d, t, first, dhidden, dcell, through, dgates, drecurrent);
    gemm(GemmShape::dense(false, false, N, R, G), DualSpan<const T>(drecurrent), parameters(p.h2h), T(0), dstate);
    for (int64_t n = 0; n < N; ++n) {
      if (finished(t, n)) {
        copy(kept_state.span() + n * R, R, dstate + n * R);
        copy(kept_cell.span() + n * H, H, dcell + n * H);
      } else if (g_.mode == RnnMode::kGru) {
        for (int64_t k = 0; k < R; ++k) dstate.set(n * R + k, dstate.get(n * R + k) + through.get(n * R + k));
      }
    }
  }

  // through: the part of a GRU's state gradient that does not go through the recurrent weights.
  void gate_gradients(Cell& c, int64_t d, int64_t t, bool first, DualSpan<const T> dhidden, DualSpan<T> dcell,
                      DualSpan<T> through, DualSpan<T> dgates, DualSpan<T> drecurrent) {
    const int64_t N = g_.batch, H = g_.hidden, G = g_.gate_size(), R = g_.recurrent();
    const DualSpan<const T> gates = c.gates.span() + t * N * G, extra = c.extra.span() + t * N * H;
    const DualSpan<const T> before = c.before.span() + t * N * R, state = c.states.span() + t * N * R;
    const int64_t earlier = d == 0 ? t - 1 : t + 1;
    const DualSpan<const T> cell_before = first ? c.first_cell : DualSpan<const T>(c.extra.span() + earlier * N * H);
    for (int64_t n = 0; n < N; ++n) {
      for (int64_t j = 0; j < H; ++j) {
        const int64_t at = n * H + j, gate = n * G + j;
        const auto activation = [&](int64_t k) { return gates.get(gate + k * H); };
        const Dual<T> up = dhidden.get(at);
        if (g_.mode == RnnMode::kLstm) {
          const Dual<T> i = activation(0), f = activation(1), g = activation(2), o = activation(3);
          const Dual<T> squashed = tanh(extra.get(at));
          Dual<T> dc = up * o * one_minus(squashed * squashed) + dcell.get(at);
          if (!inside(extra.get(at).value)) dc = {};
          store(dgates, gate,
                {dc * g * i * one_minus(i), dc * cell_before.get(at) * f * one_minus(f), dc * i * one_minus(g * g),
                 up * squashed * o * one_minus(o)});
          dcell.set(at, dc * f);
        } else if (g_.mode == RnnMode::kGru) {
          const Dual<T> r = activation(0), z = activation(1), x = activation(2);
          const Dual<T> dx = up * one_minus(z) * one_minus(x * x), dr = dx * extra.get(at) * r * one_minus(r);
          const Dual<T> dz = up * (before.get(at) - x) * z * one_minus(z);
          store(dgates, gate, {dr, dz, dx});
          store(drecurrent, gate, {dr, dz, dx * r});
          through.set(at, up * z);
        } else {
          const Dual<T> h = state.get(at);
          const bool open = h.value > 0;
          dgates.set(gate, g_.mode == RnnMode::kTanh ? up * one_minus(h * h) : open ? up : Dual<T>{});
        }
      }
    }
  }

  const RnnGeometry& g_;
  const RnnSecondOrder<T>& a_;
  Temporary<Cell> cells_;
  Temporary<DualSpan<const T>> inputs_;  // each layer's
  Temporary<DualArray<T>> outputs_, dropped_;
};

}  // namespace

void rnn_second_order(const RnnGeometry& g, const RnnSecondOrder<float>& a) { SecondOrder<float>(g, a).run(); }
void rnn_second_order(const RnnGeometry& g, const RnnSecondOrder<double>& a) { SecondOrder<double>(g, a).run(); }

}  // namespace hybridnet::kernels
