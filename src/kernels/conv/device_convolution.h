// Convolutions and their gradients in memory of a device, on device::current(), which must be set: by a library of the
// device where it computes them and pays (library_convolution.h), else by our own kernels. dtype: float32 or float64.
// Every layout of ConvGeometry.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include "hybridnet/base.h"
#include "kernels/conv/conv_geometry.h"

namespace hybridnet::kernels::on_device {

// y = convolution of x + bias + addend; bias and addend may be null.
void convolve(const ConvGeometry& g, DType dtype, const void* x, const void* w, const void* bias, const void* addend,
              void* y);
// dx = the gradient for x + bias, which is per channel of x and may be null.
void convolve_data_gradient(const ConvGeometry& g, DType dtype, const void* dy, const void* w, const void* bias,
                            void* dx);
// db may be null.
void convolve_weight_gradient(const ConvGeometry& g, DType dtype, const void* x, const void* dy, void* dw, void* db);

// db = the sum of dy for each channel. dtype: any floating one.
void sum_bias_gradient(const ConvGeometry& g, DType dtype, const void* dy, void* db);

// A convolution or one of its gradients as products of matrices, one for each group (kernels/device/convolution.cuh).
struct ConvProduct {
  int64_t rows = 0, columns = 0, depth = 0;
  static ConvProduct forward(const ConvGeometry& g);
  static ConvProduct data_gradient(const ConvGeometry& g);
  static ConvProduct weight_gradient(const ConvGeometry& g);
};

// The steps of 16 of depth that our own kernel needs, one after the other.
int64_t own_steps(const ConvGeometry& g, const ConvProduct& product, bool of_weights);

}  // namespace hybridnet::kernels::on_device
