// Deconvolution: the data gradient of a convolution as a layer. Its own gradients are a convolution and that
// convolution's weight gradient.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/nn/convolution_params.h"

namespace hybridnet::ops {
namespace {

using onednn::ConvKind;

const OpRef kConvolution{"Convolution"}, kBackwardWeights{"_conv_backward_weights"};

struct DeconvolutionParams : ConvolutionParams {
  Tuple adj, target_shape;
  static void describe(ParamSchema<DeconvolutionParams>& schema);

  int64_t adj_at(int i) const { return tuple_at(adj, i, 0); }
  int64_t target_at(int i) const { return tuple_at(target_shape, i, 0); }  // 0: not set
  // Length of the output before pad removes elements.
  int64_t full_size(int i, int64_t in) const {
    return checked_plus(checked_times(stride_at(i), in - 1, "stride"), reach(i), "kernel");
  }
};

void check_deconvolution(const DeconvolutionParams& p) {
  check_convolution(p);
  check_tuple("adj", p.adj, p.spatial(), 0);
  check_tuple("target_shape", p.target_shape, p.spatial(), 0);
  for (int i = 0; i < p.spatial(); ++i) {
    if (p.target_at(i) == 0 && p.adj_at(i) >= p.stride_at(i)) {
      throw ParamError({.input = "adj",
                        .expected = "less than stride (" + std::to_string(p.stride_at(i)) + ") along spatial axis " +
                                    std::to_string(i),
                        .given = std::to_string(p.adj_at(i))});
    }
  }
}

void DeconvolutionParams::describe(ParamSchema<DeconvolutionParams>& schema) {
  describe_convolution_fields(schema, true, 512);
  schema.field("adj", &DeconvolutionParams::adj)
      .default_value(Tuple::scalar())
      .doc("Elements added at the end of the output, less than stride; empty: none.");
  schema.field("target_shape", &DeconvolutionParams::target_shape)
      .default_value(Tuple::scalar())
      .doc("Spatial sizes of the output, instead of pad and adj; empty: sizes follow from pad and adj.");
  schema.check(check_deconvolution);
}

// The convolution from the output back to the data, with the pad that target_shape implies.
ConvolutionParams transposed(const DeconvolutionParams& p, const Shape& data) {
  ConvolutionParams q = p;
  q.no_bias = true;
  q.num_filter = data[p.axes().channel];
  q.pad = Tuple::scalar();
  for (int i = 0; i < p.spatial(); ++i) {
    const int64_t cut = p.full_size(i, data[p.axes().first + i]) - p.target_at(i);
    q.pad.push_back(p.target_at(i) > 0 ? (cut + 1) / 2 : p.pad_at(i));
  }
  return q;
}

// ---- shapes

int64_t output_size(const InferContext& c, const DeconvolutionParams& p, int i, int64_t in) {
  const int64_t target = p.target_at(i);
  if (in == kUnknownDim) return target > 0 ? target : kUnknownDim;
  const int64_t full = p.full_size(i, in);
  const std::string axis = "spatial axis " + std::to_string(i);
  if (target > full) {
    throw ShapeError({.input = c.input_name(0),
                      .expected = "enough elements along " + axis + " for target_shape " + p.target_shape.str(),
                      .given = std::to_string(in) + ", which give at most " + std::to_string(full)});
  }
  if (target > 0 && (full - target) % 2 >= p.stride_at(i)) {
    throw ShapeError(
        {.input = "target_shape",
         .expected = "an " + std::string(full % 2 == 0 ? "even" : "odd") + " size along " + axis,
         .given = std::to_string(target),
         .because = "with stride 1 the " + std::to_string(full) + " elements are cut equally on both sides"});
  }
  const int64_t size = target > 0 ? target : full - 2 * p.pad_at(i) + p.adj_at(i);
  if (size < 0) {
    throw ShapeError(
        {.input = c.input_name(0),
         .expected = "an output with at least 0 elements along " + axis,
         .given = std::to_string(in) + ", shape " + c.in_shape(0).str(),
         .because = "pad cuts " + std::to_string(2 * p.pad_at(i)) + " of " + std::to_string(full + p.adj_at(i))});
  }
  return size;
}

void infer_deconvolution(const DeconvolutionParams& p, InferContext& c) {
  c.unify_dtypes();
  const ImageAxes axes = p.axes();
  require_image(c, 0, axes);
  check_groups(c, c.in_shape(0)[axes.channel], p.num_group);
  Shape weight = Shape::unknown(axes.ndim());
  weight[0] = c.in_shape(0)[axes.channel];
  weight[axes.channel] = p.num_filter / p.num_group;
  for (int i = 0; i < axes.spatial; ++i) weight[axes.first + i] = p.kernel[i];
  c.set_in_shape(1, weight);
  if (!p.no_bias) c.set_in_shape(2, Shape{p.num_filter});
  Shape out = Shape::unknown(axes.ndim());
  out[0] = c.in_shape(0)[0];
  out[axes.channel] = p.num_filter;
  for (int i = 0; i < axes.spatial; ++i) out[axes.first + i] = output_size(c, p, i, c.in_shape(0)[axes.first + i]);
  c.set_out_shape(0, out);
  // From the output back to the data: the batch and the channels always, a spatial size unless target_shape hides it.
  Shape data = Shape::unknown(axes.ndim());
  data[0] = c.out_shape(0)[0];
  data[axes.channel] = c.in_shape(1)[0];
  for (int i = 0; i < axes.spatial; ++i) {
    const int64_t known = c.out_shape(0)[axes.first + i];
    if (known == kUnknownDim || p.target_at(i) > 0) continue;
    const int64_t steps = known + 2 * p.pad_at(i) - p.adj_at(i) - p.reach(i);
    if (steps >= 0 && steps % p.stride_at(i) == 0) data[axes.first + i] = steps / p.stride_at(i) + 1;
  }
  c.set_in_shape(0, data);
}

// ---- gradient

Values deconvolution_gradient(const DeconvolutionParams& p, const GradientContext& g) {
  Values grads(static_cast<size_t>(g.num_inputs()));
  const Value dy = g.output_grad(0);
  if (!dy) return grads;
  const ConvolutionParams q = transposed(p, g.input_spec(0).shape);
  const Shape& out = g.output_spec(0).shape;
  if (g.wants(0)) grads[0] = call(kConvolution, {dy, g.input(1)}, ParamSchema<ConvolutionParams>::box(q));
  if (g.wants(1)) grads[1] = call(kBackwardWeights, {dy, g.input(0)}, conv_gradient_params(q, out, true));
  if (!p.no_bias && g.wants(2)) {
    Tuple others = Tuple::scalar();
    for (int i = 0; i < out.ndim(); ++i)
      if (i != p.axes().channel) others.push_back(i);
    grads[2] = sum(dy, others, false);
  }
  return grads;
}

}  // namespace

void register_deconvolution(OpRegistry& ops) {
  ops.declare<DeconvolutionParams>("Deconvolution")
      .alias("_npx_deconvolution")
      .doc(
          "Transposed convolution: each element of data adds its multiple of the kernels to the output, stride apart: "
          "out[n, o, p * stride + q * dilate - pad] += data[n, i, p] * weight[i, o, q], plus bias[o].")
      .input("data", "(batch, channels, spatial...), 1 to 3 spatial axes; with layout N...C the channels are last")
      .input("weight",
             "(channels, num_filter / num_group, kernel...), or (channels, kernel..., num_filter / num_group)")
      .optional_input("bias", "(num_filter,)")
      .output("output",
              "(batch, num_filter, out...) with out = stride (size - 1) + dilate (kernel - 1) + 1 - 2 pad + adj")
      .num_inputs([](const DeconvolutionParams& p) { return p.no_bias ? 2 : 3; })
      .infer(infer_deconvolution)
      .heavy()
      .any_device()
      .link([](const DeconvolutionParams& p, const LinkContext& c) {
        const kernels::ConvGeometry g =
            conv_geometry(transposed(p, c.in[0].shape), c.out[0].shape, c.in[0].shape, linked_channels_last(c));
        return link_conv(c, g, {.kind = ConvKind::kBackwardData, .bias = !p.no_bias});
      })
      .gradient(deconvolution_gradient, Saves::of({0, 1}))
      .image({0}, {0})
      .image_when([](const DeconvolutionParams& p) { return !is_channels_last(p.layout); })
      .cost([](const DeconvolutionParams& p, auto in, auto out) {
        return conv_cost_ns(conv_geometry(transposed(p, in[0].shape), out[0].shape, in[0].shape, false), in[0].dtype);
      })
      .flops([](const DeconvolutionParams& p, auto in, auto out) {
        return conv_geometry(transposed(p, in[0].shape), out[0].shape, in[0].shape, false).flops();
      })
      .amp(AmpType::kHalf)
      .sample({{2, 4, 3, 4}, {4, 2, 3, 3}, {2}}, {{"kernel", "(3, 3)"},
                                                  {"num_filter", "2"},
                                                  {"stride", "(2, 2)"},
                                                  {"pad", "(1, 1)"},
                                                  {"adj", "(1, 0)"},
                                                  {"no_bias", "False"}})
      .sample({{2, 4, 3, 3}, {4, 3, 2, 3}},
              {{"kernel", "(2, 3)"}, {"num_filter", "6"}, {"num_group", "2"}, {"dilate", "(2, 1)"}})
      .sample({{2, 3, 4}, {3, 2, 3}, {2}},
              {{"kernel", "(3,)"}, {"num_filter", "2"}, {"stride", "(2,)"}, {"no_bias", "False"}})
      .sample({{1, 2, 2, 3, 2}, {2, 2, 2, 2, 3}}, {{"kernel", "(2, 2, 3)"}, {"num_filter", "2"}, {"pad", "(0, 1, 1)"}})
      .sample({{2, 3, 4, 4}, {3, 2, 4, 4}},
              {{"kernel", "(4, 4)"}, {"num_filter", "2"}, {"stride", "(2, 2)"}, {"target_shape", "(8, 7)"}})
      .sample(
          {{2, 3, 3, 4}, {4, 2, 2, 2}, {2}},
          {{"kernel", "(2, 2)"}, {"num_filter", "2"}, {"stride", "(2, 2)"}, {"layout", "NHWC"}, {"no_bias", "False"}});
}

}  // namespace hybridnet::ops
