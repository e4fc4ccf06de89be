// The choice of the algorithm for a convolution or one of its gradients. All code that needs one calls this.
#pragma once

#include "kernels/conv/conv_geometry.h"
#include "kernels/dnnl/convolution.h"

namespace hybridnet::onednn {

enum class ConvAlgorithm : int8_t {
  kReference,    // plain loops: float64, and empty tensors, which oneDNN refuses
  kDirect,       // oneDNN's direct sums of products
  kDense,        // kernels/product/packed_product.h: a dense layer applied to each pixel
  kDepthwise,    // kernels/conv/depthwise.h
  kWinograd2x2,  // kernels/conv/winograd.h: rounds like the direct sum
  kWinograd4x4   // kernels/dnnl/winograd.h: fewer products, larger rounding errors
};

struct ConvQuestion {
  kernels::ConvGeometry geometry;
  Convolution::Options options;  // remember: the weights rarely change, so that transforming them pays
  bool may_round_more = false;   // kWinograd4x4 is allowed
};

// Depends on its argument and the machine alone, so that equal calls give equal bits. options.dtype: float32, float64,
// or bfloat16 where has_bfloat16().
ConvAlgorithm choose_convolution(const ConvQuestion& question);

}  // namespace hybridnet::onednn
