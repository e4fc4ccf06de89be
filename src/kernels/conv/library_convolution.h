// Convolutions and their gradients by a library of the device (device/library_convolution.h), with what it leaves to
// our kernels: biases and addends. On device::current(), which must be set. dtype: any floating one; halves are summed
// in float32, and rounded before and after a bias or an addend is added.
// False: no library computes this, or it does not pay, and nothing was launched.
// Threads: any. Launches are in the order of the stream.
// Throws:  EngineError, OutOfMemoryError.
#pragma once

#include "hybridnet/base.h"
#include "kernels/conv/conv_geometry.h"

namespace hybridnet::kernels::on_device {

// The arguments are those of the functions of device_convolution.h.
bool convolve_by_library(const ConvGeometry& g, DType dtype, const void* x, const void* w, const void* bias,
                         const void* addend, void* y);
bool convolve_data_gradient_by_library(const ConvGeometry& g, DType dtype, const void* dy, const void* w,
                                       const void* bias, void* dx);
bool convolve_weight_gradient_by_library(const ConvGeometry& g, DType dtype, const void* x, const void* dy, void* dw,
                                         void* db);

}  // namespace hybridnet::kernels::on_device
