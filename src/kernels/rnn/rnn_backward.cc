#include <algorithm>
#include <utility>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/memory/strided_copy.h"
#include "kernels/product/gemm.h"
#include "kernels/product/packed_product.h"
#include "kernels/reduce/reduce.h"
#include "kernels/rnn/device_rnn.h"
#include "kernels/rnn/rnn.h"

namespace hybridnet::kernels {
namespace {

template <typename T>
void copy(const T* from, int64_t n, T* to) {
  copy_bytes(from, to, n * static_cast<int64_t>(sizeof(T)));
}
template <typename T>
void clear(T* values, int64_t n) {
  zero_bytes(values, n * static_cast<int64_t>(sizeof(T)));
}

// The states of all steps: element (t, n) begins at data + (t * batch + n) * stride.
template <typename T>
struct StateSequence {
  const T* data;
  int64_t stride;
};

template <typename T>
class Backward {
 public:
  Backward(const RnnGeometry& g, const RnnBackward<T>& a) : g_(g), a_(a) {
    T* at = a.workspace;
    const auto take = [&at](int64_t n) { return std::exchange(at, at + n); };
    const int64_t P = g.positions(), N = g.batch;
    if (!a.dgates) dgates_ = take(P * g.gate_size());
    if (g.mode == RnnMode::kGru) drecurrent_ = take(P * g.gate_size());
    if (g.layers > 1) {
      dinput_[0] = take(P * g.output());
      dinput_[1] = take(P * g.output());
    }
    if (g.projection > 0) {
      dprojected_ = take(P * g.projection);
      hidden_ = take(P * g.hidden);
    }
    if (g.dropout > 0) dropped_ = take(P * g.output());
    dstate_ = take(N * g.recurrent());
    up_ = take(N * g.recurrent());
    kept_state_ = take(N * g.recurrent());
    state_copy_ = take(N * g.recurrent());
    dcell_ = take(N * g.hidden);
    kept_cell_ = take(N * g.hidden);
    dhidden_ = take(N * g.hidden);
    if (g.packs_gradients()) packed_ = take(g.gate_size() * std::max(g.recurrent(), g.max_layer_input()));
  }

  void run() {
    const T* dout = a_.dout;
    for (int64_t layer = g_.layers - 1; layer >= 0; --layer) {
      const T* in = input_of(layer);
      T* din = layer == 0 ? a_.ddata : dinput_[layer % 2];
      for (int64_t direction = 0; direction < g_.directions; ++direction) {
        run_cell(layer, direction, dout);
        weight_gradients(layer, direction, in, din);
      }
      if (layer > 0 && a_.drop) multiply(din, a_.reserve + g_.multiplier_offset(layer - 1), din);
      dout = din;
    }
  }

 private:
  void multiply(const T* a, const T* b, T* out) const {
    if (device::current()) {
      const void* const in[] = {a, b};
      return apply_parallel(loops(Pointwise::kMul), dtype_of<T>::value, in, out, g_.positions() * g_.output());
    }
    parallel_for(g_.positions() * g_.output(), 1.2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = a[i] * b[i];
    });
  }

  const T* input_of(int64_t layer) {
    if (layer == 0) return a_.data;
    const T* out = a_.reserve + g_.layer_output_offset(layer - 1);
    if (!a_.drop) return out;
    multiply(out, a_.reserve + g_.multiplier_offset(layer - 1), dropped_);
    return dropped_;
  }

  StateSequence<T> states(int64_t layer, int64_t direction) const {
    if (g_.masked) return {a_.reserve + g_.reserve_of(layer, direction).states, g_.recurrent()};
    const T* out = layer == g_.layers - 1 ? a_.out : a_.reserve + g_.layer_output_offset(layer);
    return {out + direction * g_.recurrent(), g_.output()};
  }

  // Returns the states of step t as one block.
  const T* state_at(const StateSequence<T>& s, int64_t t) {
    const T* from = s.data + t * g_.batch * s.stride;
    if (s.stride == g_.recurrent()) return from;
    StridedCopy rows;
    rows.add_axis(g_.batch, s.stride, g_.recurrent());
    rows.add_axis(g_.recurrent(), 1, 1);
    rows.run(from, state_copy_, sizeof(T));
    return state_copy_;
  }

  void run_cell(int64_t layer, int64_t direction, const T* dout) {
    const auto p = g_.parameters_of(layer, direction);
    const int64_t cell = layer * g_.directions + direction, N = g_.batch, R = g_.recurrent(), H = g_.hidden;
    place_gates(layer, direction);
    start(a_.dstate_out, cell, N * R, dstate_);
    if (g_.mode == RnnMode::kLstm) start(a_.dcell_out, cell, N * H, dcell_);
    if (packed_) pack_weights(ProductWeights<T>::plain(a_.parameters + p.h2h, g_.gate_size(), R), packed_);
    for (int64_t i = g_.steps - 1; i >= 0; --i) {
      const int64_t t = direction == 0 ? i : g_.steps - 1 - i, before = direction == 0 ? t - 1 : t + 1;
      add_output_gradient(t, direction, dout);
      keep_finished(t);
      step(layer, direction, p, t, i == 0 ? -1 : before);
      restore_finished(t);
    }
    copy(dstate_, N * R, a_.dstate + cell * N * R);
    if (g_.mode == RnnMode::kLstm) copy(dcell_, N * H, a_.dcell + cell * N * H);
  }

  // Must run before a step writes the gradients of its gates, which may overwrite the gates.
  void place_gates(int64_t layer, int64_t direction) {
    const auto r = g_.reserve_of(layer, direction);
    if (a_.dgates) dgates_ = a_.dgates + r.gates;
    if (g_.mode != RnnMode::kGru) drecurrent_ = dgates_;
    if (g_.projection > 0) lstm_hidden(g_.positions(), g_.hidden, a_.reserve + r.gates, a_.reserve + r.extra, hidden_);
  }

  static void start(const T* gradients, int64_t cell, int64_t n, T* to) {
    if (gradients)
      copy(gradients + cell * n, n, to);
    else
      clear(to, n);
  }

  void add_output_gradient(int64_t t, int64_t direction, const T* dout) {
    const int64_t R = g_.recurrent();
    if (device::current())
      return on_device::add_strided(g_.batch, R, static_cast<const T*>(dstate_),
                                    dout + t * g_.batch * g_.output() + direction * R, g_.output(), up_);
    for (int64_t n = 0; n < g_.batch; ++n) {
      const T* from = dout + (t * g_.batch + n) * g_.output() + direction * R;
      for (int64_t i = 0; i < R; ++i) up_[n * R + i] = dstate_[n * R + i] + from[i];
    }
  }

  // Steps after an example's end change nothing: the gradients are passed on unchanged.
  bool finished(int64_t t, int64_t n) const { return g_.masked && t >= a_.lengths[n]; }
  void keep_finished(int64_t t) {
    const int64_t R = g_.recurrent(), H = g_.hidden;
    if (g_.masked && device::current()) {
      const on_device::StepRows rows{a_.lengths, t, g_.batch};
      copy(dstate_, g_.batch * R, kept_state_);
      copy(dcell_, g_.batch * H, kept_cell_);
      on_device::set_finished<T>(rows, R, nullptr, up_);
      return on_device::set_finished<T>(rows, H, nullptr, dcell_);
    }
    for (int64_t n = 0; g_.masked && n < g_.batch; ++n) {
      if (!finished(t, n)) continue;
      copy(dstate_ + n * R, R, kept_state_ + n * R);
      copy(dcell_ + n * H, H, kept_cell_ + n * H);
      std::fill_n(up_ + n * R, R, T(0));
      std::fill_n(dcell_ + n * H, H, T(0));
    }
  }
  void restore_finished(int64_t t) {
    const int64_t R = g_.recurrent(), H = g_.hidden;
    if (g_.masked && device::current()) {
      const on_device::StepRows rows{a_.lengths, t, g_.batch};
      on_device::set_finished<T>(rows, R, kept_state_, dstate_);
      return on_device::set_finished<T>(rows, H, kept_cell_, dcell_);
    }
    for (int64_t n = 0; g_.masked && n < g_.batch; ++n) {
      if (!finished(t, n)) continue;
      copy(kept_state_ + n * R, R, dstate_ + n * R);
      copy(kept_cell_ + n * H, H, dcell_ + n * H);
    }
  }

  // Calls f(first row, rows) over the batch, on as many cores as the arithmetic of a step is worth.
  template <typename F>
  void for_rows(const F& f) const {
    if (device::current()) return f(0, g_.batch);
    parallel_for(g_.batch, 5.0 * static_cast<double>(g_.hidden),
                 [&f](int64_t begin, int64_t end) { f(begin, end - begin); });
  }

  // out = gradients of gates (rows, gate_size) * weights (gate_size, columns), or packed_ instead of weights if it is
  // set.
  void down(int64_t rows, int64_t columns, const T* gradients, const T* weights, bool accumulate, T* out) const {
    const int64_t G = g_.gate_size();
    if (packed_)
      packed_product(PackedProduct<T>{packed_, G, columns, gradients, rows, out, accumulate ? out : nullptr});
    else
      gemm(GemmShape::dense(false, false, rows, columns, G), T(1), gradients, weights, T(accumulate), out);
  }

  // The incoming gradients of a finished example are zero, so its gates get zero gradients. before: the step that ran
  // before t, or -1.
  void step(int64_t layer, int64_t direction, const RnnGeometry::CellParameters& p, int64_t t, int64_t before) {
    const int64_t cell = layer * g_.directions + direction, N = g_.batch, R = g_.recurrent(), H = g_.hidden,
                  G = g_.gate_size();
    const auto r = g_.reserve_of(layer, direction);
    const T *gates = a_.reserve + r.gates + t * N * G, *extra = a_.reserve + r.extra;
    T *dgates = dgates_ + t * N * G, *drecurrent = drecurrent_ + t * N * G;
    const T* weights = a_.parameters + p.h2h;
    switch (g_.mode) {
      case RnnMode::kLstm: {
        const T* dhidden = up_;
        if (g_.projection > 0) {
          copy(up_, N * R, dprojected_ + t * N * R);
          gemm(GemmShape::dense(false, false, N, H, R), T(1), up_, a_.parameters + p.h2r, T(0), dhidden_);
          dhidden = dhidden_;
        }
        const T* c_prev = before < 0 ? a_.cell + cell * N * H : extra + before * N * H;
        const T* c = extra + t * N * H;
        for_rows([&](int64_t first, int64_t rows) {
          const int64_t at = first * H;
          lstm_backward_step(LstmBackwardStep<T>{rows, H, gates + 4 * at, c_prev + at, c + at, dhidden + at,
                                                 dcell_ + at, dgates + 4 * at, g_.clip});
        });
        down(N, R, dgates, weights, false, dstate_);
        break;
      }
      case RnnMode::kGru: {
        const T* h_prev = before < 0 ? a_.state + cell * N * R : state_at(states(layer, direction), before);
        const T* recurrent_n = extra + t * N * H;
        for_rows([&](int64_t first, int64_t rows) {
          const int64_t at = first * H;
          gru_backward_step(GruBackwardStep<T>{rows, H, gates + 3 * at, recurrent_n + at, h_prev + at, up_ + at,
                                               dgates + 3 * at, drecurrent + 3 * at});
        });
        down(N, R, drecurrent, weights, true, up_);
        std::swap(up_, dstate_);
        break;
      }
      case RnnMode::kRelu:
      case RnnMode::kTanh:
        plain_backward_step(g_.mode == RnnMode::kRelu, N * H, state_at(states(layer, direction), t), up_, dgates);
        down(N, R, dgates, weights, false, dstate_);
        break;
    }
  }

  void weight_gradients(int64_t layer, int64_t direction, const T* in, T* din) {
    const auto p = g_.parameters_of(layer, direction);
    const int64_t P = g_.positions(), G = g_.gate_size(), inputs = g_.layer_input(layer);
    gemm(GemmShape::dense(true, false, G, inputs, P), T(1), dgates_, in, T(0), a_.dparameters + p.i2h);
    if (din) {
      if (packed_) pack_weights(ProductWeights<T>::plain(a_.parameters + p.i2h, G, inputs), packed_);
      down(P, inputs, dgates_, a_.parameters + p.i2h, direction != 0, din);
    }
    state_weight_gradient(layer, direction, p);
    if (g_.projection > 0) {
      gemm(GemmShape::dense(true, false, g_.projection, g_.hidden, P), T(1), dprojected_, hidden_, T(0),
           a_.dparameters + p.h2r);
    }
    sum_rows(dgates_, a_.dparameters + p.i2h_bias);
    sum_rows(drecurrent_, a_.dparameters + p.h2h_bias);
  }

  // Sums over steps the product of the gates' gradient and the state before: all steps but the first at once, then the
  // first.
  void state_weight_gradient(int64_t layer, int64_t direction, const RnnGeometry::CellParameters& p) {
    const int64_t N = g_.batch, R = g_.recurrent(), G = g_.gate_size(), rest = std::max<int64_t>(g_.steps - 1, 0) * N;
    T* to = a_.dparameters + p.h2h;
    const StateSequence<T> s = states(layer, direction);
    GemmShape shape = GemmShape::dense(true, false, G, R, rest);
    shape.ldb = s.stride;
    if (rest == 0)
      clear(to, G * R);
    else if (direction == 0)
      gemm(shape, T(1), drecurrent_ + N * G, s.data, T(0), to);
    else
      gemm(shape, T(1), drecurrent_, s.data + N * s.stride, T(0), to);
    if (g_.steps == 0) return;
    const T* first = direction == 0 ? drecurrent_ : drecurrent_ + rest * G;
    const T* state = a_.state + (layer * g_.directions + direction) * N * R;
    gemm(GemmShape::dense(true, false, G, R, N), T(1), first, state, T(1), to);
  }

  void sum_rows(const T* rows, T* out) const {
    const DType dtype = dtype_of<T>::value;
    reduce(Reduction::kSum, Finish::kNone, dtype, rows, Shape{g_.positions(), g_.gate_size()}, 1u, dtype, out);
  }

  const RnnGeometry& g_;
  const RnnBackward<T>& a_;
  T *dgates_ = nullptr, *drecurrent_ = nullptr, *dinput_[2] = {}, *dprojected_ = nullptr, *hidden_ = nullptr,
    *dropped_ = nullptr;
  T *dstate_, *up_, *kept_state_, *state_copy_, *dcell_, *kept_cell_, *dhidden_, *packed_ = nullptr;
};

}  // namespace

void rnn_backward(const RnnGeometry& g, const RnnBackward<float>& a) { Backward<float>(g, a).run(); }
void rnn_backward(const RnnGeometry& g, const RnnBackward<double>& a) { Backward<double>(g, a).run(); }

}  // namespace hybridnet::kernels
