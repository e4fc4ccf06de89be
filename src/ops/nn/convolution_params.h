// Parameters, shapes and kernels that convolution, deconvolution and their gradients share.
#pragma once

#include <optional>
#include <string>

#include "hybridnet/op.h"
#include "kernels/conv/conv_geometry.h"
#include "kernels/dnnl/convolution.h"
#include "ops/nn/image_layout.h"

namespace hybridnet::ops {

struct ConvolutionParams {
  Tuple kernel, stride, dilate, pad;
  int64_t num_filter = 0, num_group = 1, workspace = 0;
  bool no_bias = false, cudnn_off = false;
  std::optional<std::string> cudnn_tune;
  std::optional<ImageLayout> layout;

  int spatial() const { return kernel.ndim(); }
  ImageAxes axes() const { return ImageAxes(spatial(), is_channels_last(layout)); }
  int64_t stride_at(int i) const { return tuple_at(stride, i, 1); }
  int64_t dilate_at(int i) const { return tuple_at(dilate, i, 1); }
  int64_t pad_at(int i) const { return tuple_at(pad, i, 0); }
  int64_t reach(int i) const { return (kernel[i] - 1) * dilate_at(i) + 1; }  // extent of the dilated kernel

  static void describe(ParamSchema<ConvolutionParams>& schema);
};

// Declares the fields of ConvolutionParams, also for structs derived from it.
template <typename P>
void describe_convolution_fields(ParamSchema<P>& schema, bool no_bias_default, int64_t workspace_default) {
  const auto field = [&]<typename M>(const char* name, M ConvolutionParams::*member) {
    return schema.field(name, static_cast<M P::*>(member));
  };
  field("kernel", &ConvolutionParams::kernel).doc("Window: (w,), (h, w) or (d, h, w).");
  field("stride", &ConvolutionParams::stride)
      .default_value(Tuple::scalar())
      .doc("Strides of the window; empty: 1 everywhere.");
  field("dilate", &ConvolutionParams::dilate)
      .default_value(Tuple::scalar())
      .doc("Distance between taps; empty: 1 everywhere.");
  field("pad", &ConvolutionParams::pad).default_value(Tuple::scalar()).doc("Zeros added on both sides; empty: none.");
  field("num_filter", &ConvolutionParams::num_filter).at_least(1).doc("Number of output channels.");
  field("num_group", &ConvolutionParams::num_group)
      .default_value(1)
      .at_least(1)
      .doc("Number of groups into which channels are split; each group is convolved separately.");
  field("workspace", &ConvolutionParams::workspace).default_value(workspace_default).hidden();
  field("no_bias", &ConvolutionParams::no_bias).default_value(no_bias_default).doc("Whether the bias input is absent.");
  field("cudnn_tune", &ConvolutionParams::cudnn_tune).none_by_default().hidden();
  field("cudnn_off", &ConvolutionParams::cudnn_off).default_value(false).hidden();
  with_layouts(field("layout", &ConvolutionParams::layout))
      .doc("Order of the axes of data, weight and output; None: channels second.");
}

// Parameters of _conv_backward_data and _conv_backward_weights. The spatial sizes of x are among them: the
// output does not determine them when the stride is above 1.
struct ConvolutionGradientParams : ConvolutionParams {
  Tuple data_size;
  static void describe(ParamSchema<ConvolutionGradientParams>& schema);
};
ParamsPtr conv_gradient_params(const ConvolutionParams& p, const Shape& x, bool no_bias);

// Throws ParamError if the fields contradict each other.
void check_convolution(const ConvolutionParams& p);

// Throws ShapeError unless num_group divides the channels of input 0, if they are known.
void check_groups(const InferContext& c, int64_t channels, int64_t num_group);

// Shapes of (data, weight, bias unless no_bias) -> output; further inputs have the dtype only.
void infer_convolution(const ConvolutionParams& p, InferContext& c);
// The same without dtypes.
void infer_convolution_shapes(const ConvolutionParams& p, InferContext& c);

// Sizes of the convolution that maps x to y. Both shapes are logical; `w` is (o, c / groups, kernel) in the layout's
// order.
kernels::ConvGeometry conv_geometry(const ConvolutionParams& p, const Shape& x, const Shape& y,
                                    bool linked_channels_last);

// True if oneDNN supports convolution of this 16-bit dtype; else link_conv computes in float32.
bool has_native_conv(DType half, const kernels::ConvGeometry& g);

// Returns the kernel for any of the three products; dtypes of kFloating. The order of inputs and outputs is that of
// onednn::Convolution::Tensors.
Ref<Kernel> link_conv(const LinkContext& c, const kernels::ConvGeometry& g, onednn::Convolution::Options options);

// Nanoseconds on one core.
double conv_cost_ns(const kernels::ConvGeometry& g, DType dtype);

}  // namespace hybridnet::ops
