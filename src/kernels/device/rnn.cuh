// Recurrent cells after their products, one time step of a batch: a thread for each hidden unit. The arithmetic is that
// of kernels/rnn/cell_math.h and rnn_cells.cc.
#pragma once

#include <cmath>

#include "kernels/device/elements.cuh"
#include "kernels/device/rnn_arguments.h"
#include "kernels/elementwise/vector_math.h"

namespace hybridnet::device {

template <class T>
inline __device__ T cell_sigmoid(T x) {
  return kernels::N_ONE_LANE::sigmoid(hwy::N_ONE_LANE::ScalableTag<T>(), x);
}
template <class T>
inline __device__ T cell_tanh(T x) {
  return kernels::N_ONE_LANE::tanh(hwy::N_ONE_LANE::ScalableTag<T>(), x);
}
template <class T>
inline __device__ T gate_slope(T gate) {
  return gate * (T(1) - gate);
}

template <class T>
inline __device__ T clipped_cell(const RnnCellArguments& a, T c) {
  const T low = static_cast<T>(a.low), high = static_cast<T>(a.high);
  if (c != c) return a.clips_nan ? low : c;
  return c > high ? high : c < low ? low : c;
}

template <class T>
__device__ void lstm_step(const RnnCellArguments& a) {
  const int64_t H = a.hidden;
  for (int64_t k = first(); k < a.rows * H; k += step()) {
    T* gates = static_cast<T*>(a.gates) + k / H * 4 * H + k % H;
    const T i = cell_sigmoid(gates[0]), f = cell_sigmoid(gates[H]), g = cell_tanh(gates[2 * H]),
            o = cell_sigmoid(gates[3 * H]);
    T cell = std::fma(f, static_cast<const T*>(a.c_prev)[k], i * g);
    if (a.clips) cell = clipped_cell(a, cell);
    gates[0] = i;
    gates[H] = f;
    gates[2 * H] = g;
    gates[3 * H] = o;
    static_cast<T*>(a.c)[k] = cell;
    static_cast<T*>(a.h)[k] = o * cell_tanh(cell);
  }
}

template <class T>
__device__ void lstm_backward_step(const RnnCellArguments& a) {
  const int64_t H = a.hidden;
  for (int64_t k = first(); k < a.rows * H; k += step()) {
    const int64_t at = k / H * 4 * H + k % H;
    const T* gates = static_cast<const T*>(a.gates_in) + at;
    T* dgates = static_cast<T*>(a.dgates) + at;
    T* dc = static_cast<T*>(a.dc) + k;
    const T i = gates[0], f = gates[H], g = gates[2 * H], o = gates[3 * H];
    const T cell = static_cast<const T*>(a.c_in)[k], t = cell_tanh(cell), up = static_cast<const T*>(a.dh)[k];
    // Through h: dh o (1 - tanh(c)^2), plus the gradient from the next step.
    T down = std::fma(up * o, std::fma(-t, t, T(1)), *dc);
    if (a.clips && !(cell > static_cast<T>(a.low) && cell < static_cast<T>(a.high))) down = T(0);
    dgates[0] = down * g * gate_slope(i);
    dgates[H] = down * static_cast<const T*>(a.c_prev)[k] * gate_slope(f);
    dgates[2 * H] = down * i * std::fma(-g, g, T(1));
    dgates[3 * H] = up * t * gate_slope(o);
    *dc = down * f;
  }
}

// o tanh(c).
template <class T>
__device__ void lstm_hidden(const RnnCellArguments& a) {
  const int64_t H = a.hidden;
  for (int64_t k = first(); k < a.rows * H; k += step()) {
    const T o = static_cast<const T*>(a.gates_in)[k / H * 4 * H + 3 * H + k % H];
    static_cast<T*>(a.h)[k] = o * cell_tanh(static_cast<const T*>(a.c_in)[k]);
  }
}

template <class T>
__device__ void gru_step(const RnnCellArguments& a) {
  const int64_t H = a.hidden;
  for (int64_t k = first(); k < a.rows * H; k += step()) {
    const int64_t j = k % H, at = k / H * 3 * H + j;
    T* gates = static_cast<T*>(a.gates) + at;
    const T* recurrent = static_cast<const T*>(a.recurrent) + at;
    const T r = cell_sigmoid(static_cast<T>(gates[0] + recurrent[0]));
    const T z = cell_sigmoid(static_cast<T>(gates[H] + recurrent[H]));
    const T rec = recurrent[2 * H] + static_cast<const T*>(a.bias)[j];
    const T n = cell_tanh(static_cast<T>(std::fma(r, rec, gates[2 * H])));
    gates[0] = r;
    gates[H] = z;
    gates[2 * H] = n;
    static_cast<T*>(a.recurrent_n)[k] = rec;
    static_cast<T*>(a.h)[k] = std::fma(z, static_cast<const T*>(a.h_prev)[k] - n, n);
  }
}

template <class T>
__device__ void gru_backward_step(const RnnCellArguments& a) {
  const int64_t H = a.hidden;
  for (int64_t k = first(); k < a.rows * H; k += step()) {
    const int64_t at = k / H * 3 * H + k % H;
    const T* gates = static_cast<const T*>(a.gates_in) + at;
    T *dgates = static_cast<T*>(a.dgates) + at, *drecurrent = static_cast<T*>(a.drecurrent) + at;
    T* dh = static_cast<T*>(a.h) + k;
    const T r = gates[0], z = gates[H], n = gates[2 * H], up = *dh;
    const T dn = up * (T(1) - z) * std::fma(-n, n, T(1));
    const T dr = dn * static_cast<const T*>(a.recurrent)[k] * gate_slope(r);
    const T dz = up * (static_cast<const T*>(a.h_prev)[k] - n) * gate_slope(z);
    dgates[0] = dr;
    dgates[H] = dz;
    dgates[2 * H] = dn;
    drecurrent[0] = dr;
    drecurrent[H] = dz;
    drecurrent[2 * H] = dn * r;
    *dh = up * z;
  }
}

template <class T>
__device__ void plain_step(const RnnCellArguments& a) {
  for (int64_t k = first(); k < a.rows; k += step()) {
    const T x = static_cast<const T*>(a.gates_in)[k];
    static_cast<T*>(a.h)[k] = a.relu ? (x <= T(0) ? T(0) : x) : cell_tanh(x);
  }
}

template <class T>
__device__ void plain_backward_step(const RnnCellArguments& a) {
  for (int64_t k = first(); k < a.rows; k += step()) {
    const T y = static_cast<const T*>(a.c_in)[k], up = static_cast<const T*>(a.dh)[k];
    const T through_relu = y != y ? y : y > T(0) ? up : T(0);
    static_cast<T*>(a.dgates)[k] = a.relu ? through_relu : up * std::fma(-y, y, T(1));
  }
}

// The biases of input (a) and state (strided); from element `stride` on, that of the input alone.
template <class T>
__device__ void add_rnn_biases(const RnnRowArguments& a) {
  const T *bias = static_cast<const T*>(a.a), *state = static_cast<const T*>(a.strided);
  for (int64_t i = first(); i < a.width; i += step())
    static_cast<T*>(a.out)[i] = i < a.stride ? bias[i] + state[i] : bias[i];
}

// ---- rows of examples
inline __device__ bool is_finished(const RnnRowArguments& a, int64_t row) {
  return a.lengths && a.t >= a.lengths[row];
}

// Finished rows become those of a, or 0 if a is null.
template <class T>
__device__ void set_finished(const RnnRowArguments& a) {
  for (int64_t i = first(); i < a.rows * a.width; i += step())
    if (is_finished(a, i / a.width)) static_cast<T*>(a.out)[i] = a.a ? static_cast<const T*>(a.a)[i] : T(0);
}

// Strided rows of out become those of a; finished rows 0.
template <class T>
__device__ void write_states(const RnnRowArguments& a) {
  for (int64_t i = first(); i < a.rows * a.width; i += step()) {
    const int64_t row = i / a.width;
    static_cast<T*>(a.out)[row * a.stride + i % a.width] =
        is_finished(a, row) ? T(0) : static_cast<const T*>(a.a)[i];
  }
}

template <class T>
__device__ void add_strided(const RnnRowArguments& a) {
  for (int64_t i = first(); i < a.rows * a.width; i += step())
    static_cast<T*>(a.out)[i] =
        static_cast<const T*>(a.a)[i] + static_cast<const T*>(a.strided)[i / a.width * a.stride + i % a.width];
}

template <class T>
__device__ void drop_outputs(const RnnDropArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const T multiplier = a.keep[i] ? static_cast<T>(a.scale) : T(0);
    static_cast<T*>(a.multipliers)[i] = multiplier;
    static_cast<T*>(a.out)[i] = static_cast<const T*>(a.in)[i] * multiplier;
  }
}

}  // namespace hybridnet::device
