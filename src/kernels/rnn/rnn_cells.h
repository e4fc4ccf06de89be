// The arithmetic of recurrent cells after their products: one time step of a batch. float32 and float64. Rows are
// examples. `gates` contains the pre-activations (rows, gates * hidden) and receives the activations.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// The limits of the LSTM cell; no limits if `on` is false. With `nan`, NaN becomes `low`.
struct CellClip {
  bool on = false, nan = false;
  double low = 0, high = 0;
};

// Gates i, f, g, o:  c = f c_prev + i g;  h = o tanh(c).
template <typename T>
struct LstmStep {
  int64_t rows, hidden;
  T* gates;         // (rows, 4 hidden); null: they come from packed weights alone, and activations are not stored
  const T* c_prev;  // (rows, hidden)
  T* c;             // (rows, hidden)
  T* h;             // (rows, hidden)
  CellClip clip;
  const T* bias = nullptr;  // (4 hidden), added to the pre-activations; steps with packed weights only
};
void lstm_step(const LstmStep<float>& s);
void lstm_step(const LstmStep<double>& s);

template <typename T>
struct LstmBackwardStep {
  int64_t rows, hidden;
  const T *gates, *c_prev, *c;
  const T* dh;  // (rows, hidden)
  T* dc;        // in: gradient of c from the next step; out: gradient of c_prev
  T* dgates;    // (rows, 4 hidden): gradients of the pre-activations
  CellClip clip;
};
void lstm_backward_step(const LstmBackwardStep<float>& s);
void lstm_backward_step(const LstmBackwardStep<double>& s);

// Recomputes o tanh(c) for every row.
void lstm_hidden(int64_t rows, int64_t hidden, const float* gates, const float* c, float* h);
void lstm_hidden(int64_t rows, int64_t hidden, const double* gates, const double* c, double* h);

// Gates r, z, n:  n = tanh(gates_n + r (recurrent_n + bias_n));  h = (1 - z) n + z h_prev.
template <typename T>
struct GruStep {
  int64_t rows, hidden;
  T* gates;                       // (rows, 3 hidden): from the input; receives r, z, n
  const T* recurrent;             // (rows, 3 hidden): product of h_prev and the recurrent weights
  const T* bias;                  // (hidden): bias of the recurrent part of n
  T* recurrent_n;                 // (rows, hidden): receives recurrent_n + bias_n
  const T* h_prev;                // (rows, hidden)
  T* h;                           // (rows, hidden)
  const T* input_bias = nullptr;  // (3 hidden), if a step multiplies its input
};
void gru_step(const GruStep<float>& s);
void gru_step(const GruStep<double>& s);

template <typename T>
struct GruBackwardStep {
  int64_t rows, hidden;
  const T *gates, *recurrent_n, *h_prev;
  T* dh;          // in: gradient of h; out: the part of h_prev's gradient that does not go through the product
  T* dgates;      // (rows, 3 hidden): gradients of the pre-activations, input part
  T* drecurrent;  // (rows, 3 hidden): h_prev part
};
void gru_backward_step(const GruBackwardStep<float>& s);
void gru_backward_step(const GruBackwardStep<double>& s);

// h = relu(gates) or tanh(gates); gates are not changed.
void plain_step(bool relu, int64_t n, const float* gates, float* h);
void plain_step(bool relu, int64_t n, const double* gates, double* h);
// dgates = dh * activation', computed from h.
void plain_backward_step(bool relu, int64_t n, const float* h, const float* dh, float* dgates);
void plain_backward_step(bool relu, int64_t n, const double* h, const double* dh, double* dgates);

}  // namespace hybridnet::kernels
