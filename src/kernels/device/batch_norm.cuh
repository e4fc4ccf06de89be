// The vectors per channel of BatchNorm (ops/nn/batch_norm.cc): one thread for each channel.
#pragma once

#include <cmath>

#include "kernels/device/batch_norm_arguments.h"
#include "kernels/device/kernel.cuh"

namespace hybridnet::device {

template <class T>
inline __device__ T element(const void* values, int64_t i) {
  return static_cast<const T*>(values)[i];
}
template <class T>
inline __device__ void put(void* values, int64_t i, T value) {
  if (values) static_cast<T*>(values)[i] = value;
}

// The statistics that normalize, the factor of each channel, and the moving statistics.
template <class T>
__device__ void batch_norm_statistics(const BatchNormArguments& a) {
  const T keep = static_cast<T>(a.keep);
  for (int64_t c = first(); c < a.channels; c += step()) {
    const T old_mean = element<T>(a.old_mean, c), old_var = element<T>(a.old_var, c);
    const T mean = a.batch_statistics ? element<T>(a.mean, c) : old_mean;
    const T variance = a.batch_statistics ? element<T>(a.variance, c) : old_var;
    const T inverse = T(1) / std::sqrt(variance + static_cast<T>(a.eps));
    put(a.scale, c, a.unit_gamma ? inverse : element<T>(a.gamma, c) * inverse);
    put(a.mean, c, mean);
    put(a.mean_out, c, mean);
    put(a.var_out, c, a.var_is_variance ? variance : inverse);
    put(a.new_mean, c, keep * old_mean + (T(1) - keep) * mean);
    put(a.new_var, c, keep * old_var + (T(1) - keep) * variance);
  }
}

template <class T>
__device__ void batch_norm_scale(const BatchNormArguments& a) {
  for (int64_t c = first(); c < a.channels; c += step())
    put(a.scale, c, a.unit_gamma ? element<T>(a.inverse, c) : element<T>(a.gamma, c) * element<T>(a.inverse, c));
}

// From the sums of dy and dy * (x - mean): the gradients of beta and gamma, and what each element subtracts.
template <class T>
__device__ void batch_norm_gradients(const BatchNormArguments& a) {
  const T share = static_cast<T>(a.share);
  for (int64_t c = first(); c < a.channels; c += step()) {
    const T dgamma = element<T>(a.dgamma, c), dbeta = element<T>(a.dbeta, c), inverse = element<T>(a.inverse, c);
    put(a.offset, c, a.batch_statistics ? dbeta * share : T(0));
    put(a.slope, c, a.batch_statistics ? dgamma * inverse * inverse * share : T(0));
    put(a.dgamma_out, c, dgamma * inverse);
    put(a.dbeta_out, c, dbeta);
  }
}

}  // namespace hybridnet::device
