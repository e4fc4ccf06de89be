// Normalization of contiguous rows: to mean 0 and variance 1, scaled and shifted per column; or by their root mean
// square, scaled per column. Instantiated for float and double.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

struct NormRows {
  int64_t rows = 0, width = 0;
};

// The rows per partial column sum: enough elements to pay, and few enough blocks to keep the partial sums small.
inline int64_t norm_rows_per_block(const NormRows& s) {
  constexpr int64_t kElements = 16384, kMaxBlocks = 64;
  return std::max<int64_t>({1, kElements / std::max<int64_t>(s.width, 1), (s.rows + kMaxBlocks - 1) / kMaxBlocks});
}
inline int64_t norm_row_blocks(const NormRows& s) {
  return (s.rows + norm_rows_per_block(s) - 1) / norm_rows_per_block(s);
}

// y = (x - mean) / std * gamma + beta with std = sqrt(variance + eps); mean and std, one per row, may be null. y may
// alias x.
template <typename T>
void layer_norm(const NormRows& s, const T* x, const T* gamma, const T* beta, double eps, T* y, T* mean, T* std);

// dx = (w - avg(w) - h avg(w h)) / std with h = (x - mean) / std and w = dy gamma; dgamma = sum over rows of dy h;
// dbeta = sum over rows of dy. dgamma and dbeta may be null, dx may alias dy. Column sums are computed over fixed
// blocks of rows.
template <typename T>
void layer_norm_gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* mean, const T* std, T* dx,
                         T* dgamma, T* dbeta, void* workspace);
int64_t layer_norm_gradient_workspace(const NormRows& s, int64_t element_size);

// A residual sum before the normalization: x = kept(data) + addend, where kept sets elements to 0 with probability 1 -
// keep and divides the others by keep, like Dropout with this key.
template <typename T>
struct ResidualSum {
  const T *data = nullptr, *addend = nullptr;
  T* sum = nullptr;  // receives x, or null
  double keep = 1;
  RngKey rng = {};
};
// Computes layer_norm of this sum in one pass over memory. y and sum may alias data or addend.
template <typename T>
void add_layer_norm(const NormRows& s, const ResidualSum<T>& x, const T* gamma, const T* beta, double eps, T* y,
                    T* mean, T* std);

// Further gradients into and out of a residual sum.
template <typename T>
struct ResidualGradient {
  const T* of_sum = nullptr;  // a further gradient of the sum, added to dx, or null
  T* of_data = nullptr;       // receives kept(dx), or null
  double keep = 1;
  RngKey rng = {};
  const uint64_t* key = nullptr;  // on a device: its memory, which holds seed and stream instead of rng
};
// Computes layer_norm_gradient, whose dx is the gradient of the addend.
template <typename T>
void add_layer_norm_gradient(const NormRows& s, const ResidualGradient<T>& residual, const T* dy, const T* x,
                             const T* gamma, const T* mean, const T* std, T* dx, T* dgamma, T* dbeta, void* workspace);

// y = x / rms * gamma with rms = sqrt(avg(x^2) + eps), one per row, may be null. y may alias x.
template <typename T>
void rms_norm(const NormRows& s, const T* x, const T* gamma, double eps, T* y, T* rms);

// dx = (w - h avg(w h)) / rms with h = x / rms and w = dy gamma; dgamma = sum over rows of dy h. The rest, including
// the workspace, is the same as in layer_norm_gradient.
template <typename T>
void rms_norm_gradient(const NormRows& s, const T* dy, const T* x, const T* gamma, const T* rms, T* dx, T* dgamma,
                       void* workspace);

}  // namespace hybridnet::kernels
