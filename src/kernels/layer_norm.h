// Normalization of contiguous rows: to mean 0 and variance 1, scaled and shifted per column; or by their root mean
// square, scaled per column. Instantiated for float and double.
#pragma once

#include <cstdint>

#include "hybridnet/op.h"

namespace hybridnet::kernels {

struct NormRows {
  int64_t rows = 0, width = 0;
};

// y = (x - mean) / std * gamma + beta with std = sqrt(variance + eps); mean and std, one per row, may be null. y may be
// x.
template <typename T>
void layer_norm(const NormRows& s, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean, T* std);

// dx = (w - avg(w) - h avg(w h)) / std with h = (x - mean) / std and w = dy gamma; dgamma = sum over rows of dy h;
// dbeta = sum over rows of dy. dgamma and dbeta may be null, dx may be dy. Column sums are made over fixed blocks of
// rows.
template <typename T>
void layer_norm_gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* mean, const T* std, T* dx,
                         T* dgamma, T* dbeta, void* workspace);
int64_t layer_norm_gradient_workspace(const NormRows& s, int64_t element_size);

// A residual sum in front of the normalization: x = kept(data) + addend, where kept sets elements to 0 with probability
// 1 - keep and divides the others by keep, as Dropout with this key does.
template <typename T>
struct ResidualSum {
  const T *data = nullptr, *addend = nullptr;
  T* sum = nullptr;  // x, or null: not wanted
  double keep = 1;
  RngKey rng = {};
};
// As layer_norm of that sum, in one pass over memory. y and sum may be data or addend.
template <typename T>
void add_layer_norm(const NormRows& s, const ResidualSum<T>& x, const T* gamma, const T* beta, double eps, T* y,
                    T* mean, T* std);

// What else reaches and leaves a residual sum.
template <typename T>
struct ResidualGradient {
  const T* of_sum = nullptr;  // arrives at the sum beside what comes through the norm: added to dx; or null
  T* of_data = nullptr;       // kept(dx); null: not wanted
  double keep = 1;
  RngKey rng = {};
};
// As layer_norm_gradient, whose dx becomes the gradient of the addend.
template <typename T>
void add_layer_norm_gradient(const NormRows& s, const ResidualGradient<T>& residual, const T* dy, const T* x,
                             const T* gamma, const T* mean, const T* std, T* dx, T* dgamma, T* dbeta, void* workspace);

// y = x / rms * gamma with rms = sqrt(avg(x^2) + eps), one per row, may be null. y may be x.
template <typename T>
void rms_norm(const NormRows& s, const T* x, const T* gamma, double eps, T* y, T* rms);

// dx = (w - h avg(w h)) / rms with h = x / rms and w = dy gamma; dgamma = sum over rows of dy h. As
// layer_norm_gradient, its workspace included.
template <typename T>
void rms_norm_gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* rms, T* dx, T* dgamma,
                       void* workspace);

}  // namespace hybridnet::kernels
