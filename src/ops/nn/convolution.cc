// Convolution and the two products of its gradients. The gradient rule of each of the three consists of the other two.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/convolution_params.h"

namespace hybridnet::ops {
namespace {

using kernels::ConvGeometry;
using onednn::ConvKind;

const OpRef kConvolution{"Convolution"}, kBackwardData{"_conv_backward_data"},
    kBackwardWeights{"_conv_backward_weights"};

// (channels, kernel) of the weights in the order of the layout: (o, c / groups, kernel...) or (o, kernel..., c /
// groups).
Shape weight_shape(const ConvolutionParams& p, int64_t channels) {
  const ImageAxes axes = p.axes();
  Shape w = Shape::unknown(axes.ndim());
  w[0] = p.num_filter;
  w[axes.channel] = channels == kUnknownDim ? kUnknownDim : channels / p.num_group;
  for (int i = 0; i < axes.spatial; ++i) w[axes.first + i] = p.kernel[i];
  return w;
}

int64_t output_size(const InferContext& c, const ConvolutionParams& p, int i, int64_t in) {
  if (in == kUnknownDim) return kUnknownDim;
  const int64_t room = in + 2 * p.pad_at(i) - p.reach(i);
  if (room < 0) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "at least " + std::to_string(p.reach(i) - 2 * p.pad_at(i)) +
                                  " elements along spatial axis " + std::to_string(i),
                      .given = std::to_string(in) + ", shape " + c.in_shape(0).str(),
                      .because = "the (dilated) kernel covers " + std::to_string(p.reach(i)) + " and pad adds " +
                                 std::to_string(p.pad_at(i)) + " on both sides"});
  }
  return room / p.stride_at(i) + 1;
}

}  // namespace

void check_groups(const InferContext& c, int64_t channels, int64_t num_group) {
  if (channels == kUnknownDim || channels % num_group == 0) return;
  throw ShapeError({.input = c.input_name(0),
                    .expected = "a number of channels that num_group (" + std::to_string(num_group) + ") divides",
                    .given = std::to_string(channels) + " channels, shape " + c.in_shape(0).str()});
}

void infer_convolution(const ConvolutionParams& p, InferContext& c) {
  c.unify_dtypes();
  infer_convolution_shapes(p, c);
}

void infer_convolution_shapes(const ConvolutionParams& p, InferContext& c) {
  const ImageAxes axes = p.axes();
  require_image(c, 0, axes);
  c.set_in_shape(1, weight_shape(p, c.in_shape(0)[axes.channel]));
  if (const int64_t per_group = c.in_shape(1)[axes.channel]; per_group != kUnknownDim) {
    Shape learned = Shape::unknown(axes.ndim());
    learned[axes.channel] = checked_times(per_group, p.num_group, "num_group");
    check_groups(c, c.in_shape(0)[axes.channel], p.num_group);
    c.set_in_shape(0, learned);
  }
  if (!p.no_bias) c.set_in_shape(2, Shape{p.num_filter});
  Shape out = Shape::unknown(axes.ndim());
  out[0] = c.in_shape(0)[0];
  out[axes.channel] = p.num_filter;
  for (int i = 0; i < axes.spatial; ++i) out[axes.first + i] = output_size(c, p, i, c.in_shape(0)[axes.first + i]);
  c.set_out_shape(0, out);
  // From the output back to the data: the batch always, a spatial size if no stride rounds it.
  Shape data = Shape::unknown(axes.ndim());
  data[0] = c.out_shape(0)[0];
  for (int i = 0; i < axes.spatial; ++i) {
    const int64_t known = c.out_shape(0)[axes.first + i];
    if (known != kUnknownDim && p.stride_at(i) == 1) data[axes.first + i] = known + p.reach(i) - 1 - 2 * p.pad_at(i);
  }
  c.set_in_shape(0, data);
}

namespace {

Values convolution_gradient(const ConvolutionParams& p, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (!dy) return grads;
  const Shape& x = g.input_spec(0).shape;
  const bool wants_bias = !p.no_bias && g.wants(2);
  if (g.wants(1) || wants_bias) {
    const Values d = call_all(kBackwardWeights, {g.input(0), dy}, conv_gradient_params(p, x, !wants_bias));
    grads[1] = d[0];
    if (wants_bias) grads[2] = d[1];
  }
  // Computed last, so that data that is recomputed for the weight gradient can be freed first.
  if (g.wants(0)) grads[0] = call(kBackwardData, {dy, g.input(1)}, conv_gradient_params(p, x, true));
  return grads;
}

// ---- data gradient: (dy, w) -> dx

void infer_backward_data(const ConvolutionGradientParams& p, InferContext& c) {
  c.unify_dtypes();
  const ImageAxes axes = p.axes();
  require_image(c, 0, axes);
  require_image(c, 1, axes);
  Shape dx = Shape::unknown(axes.ndim());
  dx[0] = c.in_shape(0)[0];
  const int64_t per_group = c.in_shape(1)[axes.channel];
  if (per_group != kUnknownDim) dx[axes.channel] = checked_times(per_group, p.num_group, "num_group");
  for (int i = 0; i < axes.spatial; ++i) dx[axes.first + i] = tuple_at(p.data_size, i, kUnknownDim);
  c.set_out_shape(0, dx);
}

Values backward_data_gradient(const ConvolutionGradientParams& p, const GradientContext& g) {
  const Value d = g.output_grad(0);
  if (!d) return {};
  Values grads(2);
  ConvolutionParams forward = p;
  forward.no_bias = true;
  if (g.wants(0)) grads[0] = call(kConvolution, {d, g.input(1)}, ParamSchema<ConvolutionParams>::box(forward));
  if (g.wants(1))
    grads[1] = call(kBackwardWeights, {d, g.input(0)}, conv_gradient_params(p, g.output_spec(0).shape, true));
  return grads;
}

// ---- weight gradient: (x, dy) -> dw, db

void infer_backward_weights(const ConvolutionGradientParams& p, InferContext& c) {
  c.unify_dtypes();
  const ImageAxes axes = p.axes();
  require_image(c, 0, axes);
  require_image(c, 1, axes);
  c.set_out_shape(0, weight_shape(p, c.in_shape(0)[axes.channel]));
  if (!p.no_bias) c.set_out_shape(1, Shape{p.num_filter});
}

Values backward_weights_gradient(const ConvolutionGradientParams& p, const GradientContext& g) {
  const Value dw = g.output_grad(0);
  const Value db = p.no_bias ? Value{} : g.output_grad(1);
  Values grads(2);
  if (dw && g.wants(0))
    grads[0] = call(kBackwardData, {g.input(1), dw}, conv_gradient_params(p, g.input_spec(0).shape, true));
  if (!g.wants(1)) return grads;
  ConvolutionParams forward = p;
  forward.no_bias = !(dw && db);
  const auto params = ParamSchema<ConvolutionParams>::box(forward);
  if (dw) {
    grads[1] = db ? call(kConvolution, {g.input(0), dw, db}, params) : call(kConvolution, {g.input(0), dw}, params);
  } else if (db) {  // the bias is added at every position of its channel
    const Shape& y = g.input_spec(1).shape;
    Shape channel = Shape::unknown(y.ndim());
    for (int i = 0; i < y.ndim(); ++i) channel[i] = i == p.axes().channel ? y[i] : 1;
    grads[1] = broadcast_to(reshape(db, channel), y);
  }
  return grads;
}

int bias_inputs(const ConvolutionParams& p) { return p.no_bias ? 2 : 3; }

}  // namespace

void register_convolution(OpRegistry& ops) {
  ops.declare<ConvolutionParams>("Convolution")
      .alias("_npx_convolution")
      .alias("Convolution_v1")
      .doc(
          "Slides num_filter kernels over data and sums products: "
          "out[n, o, p] = bias[o] + sum over channels i and taps q of data[n, i, p * stride + q * dilate - pad] * "
          "weight[o, i, q].")
      .input("data", "(batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last")
      .input("weight",
             "(num_filter, channels / num_group, kernel...), or (num_filter, kernel..., channels / num_group)")
      .optional_input("bias", "(num_filter,)")
      .output("output",
              "(batch, num_filter, out...) with out = floor((size + 2 pad - dilate (kernel - 1) - 1) / stride) + 1")
      .num_inputs(bias_inputs)
      .infer(infer_convolution)
      .heavy()
      .any_device()
      .row_wise_when([](const ConvolutionParams&, int) { return true; })
      .link([](const ConvolutionParams& p, const LinkContext& c) {
        return link_conv(c, conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c)),
                         {.kind = ConvKind::kForward, .bias = !p.no_bias});
      })
      .gradient(convolution_gradient, Saves::of({0, 1}))
      .image({0}, {0})
      .image_when([](const ConvolutionParams& p) { return !is_channels_last(p.layout); })
      .quantized({.op = "_contrib_quantized_conv", .leads = true, .gives_sums = true},
                 [](const ConvolutionParams& p) { return !is_channels_last(p.layout) && p.kernel.ndim() == 2; })
      .cost([](const ConvolutionParams& p, auto in, auto out) {
        return conv_cost_ns(conv_geometry(p, in[0].shape, out[0].shape, false), in[0].dtype);
      })
      .flops([](const ConvolutionParams& p, auto in, auto out) {
        return conv_geometry(p, in[0].shape, out[0].shape, false).flops();
      })
      .fused_layer("_fused_convolution")
      .amp(AmpType::kHalf)
      .sample({{2, 4, 5, 6}, {4, 4, 3, 3}, {4}}, {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"pad", "(1, 1)"}})
      .sample({{2, 4, 7, 6}, {6, 2, 3, 2}}, {{"kernel", "(3, 2)"},
                                             {"num_filter", "6"},
                                             {"num_group", "2"},
                                             {"stride", "(2, 1)"},
                                             {"dilate", "(1, 2)"},
                                             {"no_bias", "True"}})
      .sample({{2, 3, 8}, {4, 3, 3}, {4}}, {{"kernel", "(3,)"}, {"num_filter", "4"}, {"stride", "(2,)"}})
      .sample({{1, 2, 4, 4, 3}, {2, 2, 2, 3, 2}, {2}},
              {{"kernel", "(2, 3, 2)"}, {"num_filter", "2"}, {"pad", "(1, 0, 1)"}})
      .sample({{2, 5, 5, 3}, {4, 3, 3, 3}, {4}},
              {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"layout", "NHWC"}, {"pad", "(1, 1)"}})
      .sample({{2, 4, 6, 6}, {4, 1, 3, 3}, {4}},
              {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"num_group", "4"}, {"pad", "(1, 1)"}});

  ops.declare<ConvolutionGradientParams>("_conv_backward_data")
      .internal()
      .doc("Gradient of Convolution for its data.")
      .input("output_grad", "(batch, num_filter, out...)")
      .input("weight", "same as in Convolution")
      .output("data_grad", "(batch, channels, data_size...)")
      .infer(infer_backward_data)
      .heavy()
      .any_device()
      .link([](const ConvolutionGradientParams& p, const LinkContext& c) {
        return link_conv(c, conv_geometry(p, c.out[0].shape, c.in[0].shape, linked_channels_last(c)),
                         {.kind = ConvKind::kBackwardData});
      })
      .gradient(backward_data_gradient, Saves::of({0, 1}))
      .image({0}, {0})
      .image_when([](const ConvolutionParams& p) { return !is_channels_last(p.layout); })
      .cost([](const ConvolutionGradientParams& p, auto in, auto out) {
        return conv_cost_ns(conv_geometry(p, out[0].shape, in[0].shape, false), in[0].dtype);
      })
      .sample({{2, 4, 3, 2}, {4, 3, 3, 3}}, {{"kernel", "(3, 3)"},
                                             {"num_filter", "4"},
                                             {"stride", "(2, 2)"},
                                             {"pad", "(1, 0)"},
                                             {"no_bias", "True"},
                                             {"data_size", "(6, 5)"}});

  ops.declare<ConvolutionGradientParams>("_conv_backward_weights")
      .internal()
      .doc("Gradient of Convolution for its weight and, unless no_bias, its bias.")
      .input("data", "same as in Convolution")
      .input("output_grad", "(batch, num_filter, out...)")
      .output("weight_grad", "shape of weight")
      .output("bias_grad", "(num_filter,)")
      .num_outputs([](const ConvolutionGradientParams& p) { return p.no_bias ? 1 : 2; })
      .infer(infer_backward_weights)
      .heavy()
      .any_device()
      .link([](const ConvolutionGradientParams& p, const LinkContext& c) {
        return link_conv(c, conv_geometry(p, c.in[0].shape, c.in[1].shape, linked_channels_last(c)),
                         {.kind = ConvKind::kBackwardWeights, .bias = !p.no_bias});
      })
      .gradient(backward_weights_gradient, Saves::of({0, 1}))
      .image({0, 1}, {})
      .image_when([](const ConvolutionParams& p) { return !is_channels_last(p.layout); })
      .cost([](const ConvolutionGradientParams& p, auto in, auto out) {
        (void)out;
        return conv_cost_ns(conv_geometry(p, in[0].shape, in[1].shape, false), in[0].dtype);
      })
      .sample({{2, 3, 6, 5}, {2, 4, 3, 2}}, {{"kernel", "(3, 3)"},
                                             {"num_filter", "4"},
                                             {"stride", "(2, 2)"},
                                             {"pad", "(1, 0)"},
                                             {"data_size", "(6, 5)"}});
}

}  // namespace hybridnet::ops
