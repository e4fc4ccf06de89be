// The parameters of the kernels of batch_norm.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Vectors of one element per channel. Null outputs are not written; old_mean may be new_mean, old_var may be new_var.
struct BatchNormArguments {
  const void *gamma, *inverse;
  const void *old_mean, *old_var;  // the moving statistics
  void *mean, *variance, *scale;
  void *mean_out, *var_out, *new_mean, *new_var;
  void *dgamma, *dbeta, *offset, *slope;  // for a gradient: dgamma and dbeta hold sums before
  void *dgamma_out, *dbeta_out;
  int64_t channels;
  double eps, keep, share;  // keep: factor of the moving statistics; share: 1 / elements of a channel
  int32_t unit_gamma, batch_statistics, var_is_variance;
};

}  // namespace hybridnet::device
