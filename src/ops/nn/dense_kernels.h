// Kernels of out = activation(data weight^T + bias + addend), with inputs data, weight and those of the others that
// there are: dense layers, and convolutions of single pixels.
#pragma once

#include "hybridnet/op.h"
#include "kernels/dnnl/post_ops.h"

namespace hybridnet::ops {

// data (rows, features), weight (hidden, features), bias (hidden), addend and out (rows, hidden).
struct DenseLayer {
  int64_t rows, features, hidden;
  bool bias, addend;
  onednn::Activation activation;
};

// By kernels::gemm. T: float or double; sizes may be 0.
template <typename T>
Ref<Kernel> plain_dense_kernel(const DenseLayer& layer);
// By kernels::packed_product, with weights that are packed once. float32.
Ref<Kernel> packed_dense_kernel(const DenseLayer& layer);

}  // namespace hybridnet::ops
