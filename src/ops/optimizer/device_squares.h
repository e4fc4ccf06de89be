// Sums of squares of tensors on a device, in float64, and the operators that need them. device::current() must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include <span>

#include "hybridnet/op.h"
#include "kernels/device/update_arguments.h"

namespace hybridnet::ops::on_device {

// out[i]: the sum of squares of tensor i, float32 or float64.
void sums_of_squares(std::span<const TensorRef> tensors, DType out_dtype, void* out);
// *out, 1 before, becomes 0 if an element is infinite or NaN.
void all_finite(std::span<const TensorRef> tensors, float* out);
// multi_lars
void lars(const KernelArgs& a, double eta, double eps, double rescale_grad);
// _layer_rates
void layer_rates(const KernelArgs& a, bool is_lars, double eta, double eps);
// Subtracts the step, scaled by the norms of weight and step. from: dtype of a.weight; compute: of the step; out: of
// a.out.
void apply_lamb(device::LambArguments a, DType from, DType compute, DType out);
void rows_adagrad(const device::RowsAdagradArguments& a, DType dtype);

}  // namespace hybridnet::ops::on_device
