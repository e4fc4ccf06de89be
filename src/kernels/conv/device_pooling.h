// Pooling in memory of a device: the forms of pooling.h that run on device::current(), which must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError.
#pragma once

#include "kernels/conv/pooling.h"

namespace hybridnet::kernels::on_device {

template <typename T>
void pool_forward(const PoolGeometry& g, const T* x, T* y);
template <typename T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx);
template <typename T>
void max_pool_gather(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out);
template <typename T>
void sum_pool_backward(const PoolGeometry& g, const T* dy, T* dx);

}  // namespace hybridnet::kernels::on_device
