// oneDNN's descriptions of the layouts of a convolution's tensors.
#pragma once

#include "kernels/conv/conv_geometry.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::onednn {

struct ConvDescs {
  using Dims = dnnl::memory::dims;
  using Type = dnnl::memory::data_type;
  ConvDescs(const kernels::ConvGeometry& g, Type type) : ConvDescs(g, type, type, type, type) {}
  ConvDescs(const kernels::ConvGeometry& g, Type x_type, Type w_type, Type bias_type, Type y_type);

  Desc x, w, y, bias_x, bias_y;  // the caller's layouts
  Desc x_any, w_any, y_any;      // layouts that oneDNN may choose
  Dims stride, dilate, pad_left, pad_right;
};

}  // namespace hybridnet::onednn
