// Normalization of contiguous rows: to mean 0 and variance 1, scaled and shifted per column; or by their root mean
// square, scaled per column. Instantiated for float and double.
#pragma once

#include <cstdint>

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

// y = x / rms * gamma with rms = sqrt(avg(x^2) + eps), one per row, may be null. y may be x.
template <typename T>
void rms_norm(const NormRows& s, const T* x, const T* gamma, double eps, T* y, T* rms);

// dx = (w - h avg(w h)) / rms with h = x / rms and w = dy gamma; dgamma = sum over rows of dy h. As
// layer_norm_gradient, its workspace included.
template <typename T>
void rms_norm_gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* rms, T* dx, T* dgamma,
                       void* workspace);

}  // namespace hybridnet::kernels
