// Kernels of out = activation(data weight^T + bias + addend) with inputs data, weight and, if present, bias and addend:
// dense layers, and convolutions with 1x1 kernels.
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

// Uses kernels::gemm. T: float or double; sizes may be 0.
template <typename T>
Ref<Kernel> plain_dense_kernel(const DenseLayer& layer);
// Uses kernels::packed_product, with weights that are packed once. float32.
Ref<Kernel> packed_dense_kernel(const DenseLayer& layer);
// The same with kernels::tile_product. bfloat16.
Ref<Kernel> tile_dense_kernel(const DenseLayer& layer);

}  // namespace hybridnet::ops
