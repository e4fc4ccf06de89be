// Softmax and normalizations in memory of a device: the forms of softmax.h, layer_norm.h and batch_norm.h that run on
// device::current(), which must be set. T: float or double.
// Threads: any. Launches are in the order of the stream.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include <cstdint>

#include "kernels/norm/batch_norm.h"
#include "kernels/norm/layer_norm.h"
#include "kernels/norm/softmax.h"

namespace hybridnet::kernels::on_device {

template <typename T>
void softmax(const RowShape& s, const T* x, double scale, bool log, const int64_t* lengths, T* y);
template <typename T>
void softmax_gradient(const RowShape& s, const T* dy, const T* y, double scale, bool log, T* dx);
template <typename T>
void log_softmax_pick(const RowShape& s, const T* x, const int64_t* index, T* picked, T* total);
template <typename T>
void log_softmax_pick_gradient(const RowShape& s, const T* dy, const T* x, const int64_t* index, const T* total, T* dx);

// centers: LayerNorm; otherwise RMSNorm, without beta and mean.
template <typename T>
void layer_norm(bool centers, const NormRows& s, const ResidualSum<T>& x, const T* gamma, const T* beta, double eps,
                T* y, T* mean, T* std);
template <typename T>
void layer_norm_gradient(bool centers, const NormRows& s, const ResidualGradient<T>& residual, const T* dy, const T* x,
                         const T* gamma, const T* mean, const T* std, T* dx, T* dgamma, T* dbeta);

template <typename T>
void channel_mean_variance(const ChannelShape& s, const T* x, T* mean, T* variance);
template <typename T>
void channel_normalize(const ChannelShape& s, const T* x, const T* mean, const T* scale, const T* shift, bool relu,
                       T* y);
template <typename T>
void channel_gradient_sums(const ChannelShape& s, const ChannelGradient<T>& g, T* sum_dy, T* sum_product);
template <typename T>
void channel_gradient_apply(const ChannelShape& s, const ChannelGradient<T>& g, const T* factor, const T* offset,
                            const T* slope, T* dx);

}  // namespace hybridnet::kernels::on_device
