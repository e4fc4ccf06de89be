// Parts of all layers of floats with weights of bytes: inputs data, weight, scale and, if present, bias and addend.
#pragma once

#include "ops/nn/dense_kernels.h"
#include "ops/quantized/products.h"

namespace hybridnet::ops {

void infer_dense_of_bytes(const QuantizedDenseParams& p, InferContext& c);

// The gradients of data, scale and bias; the bytes have none. Data that the layer rounds counts as not rounded.
Values dense_of_bytes_gradient(const QuantizedDenseParams& p, const GradientContext& g);

// The layer on a GPU, with sums of floats. rounds: the rows of data are rounded to bytes first.
Ref<Kernel> dense_of_bytes_on_device(const DenseLayer& layer, bool rounds);

}  // namespace hybridnet::ops
