// Convolutions and their gradients in memory of a device, on device::current(), which must be set. dtype: float32 or
// float64. Every layout of ConvGeometry.
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

}  // namespace hybridnet::kernels::on_device
