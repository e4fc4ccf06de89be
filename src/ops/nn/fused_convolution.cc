// Convolution that adds another tensor and applies an activation before its result is stored. Prediction only: passes
// make it after differentiation.
#include "hybridnet/op.h"
#include "op/through_float.h"
#include "ops/nn/activation_params.h"
#include "ops/nn/convolution_params.h"

namespace hybridnet::ops {
namespace {

using onednn::ConvKind;

struct FusedConvolutionParams : ConvolutionParams, FusedActivation {
  bool with_addend = false;
  static void describe(ParamSchema<FusedConvolutionParams>& schema) {
    describe_convolution_fields(schema, false, 1024);
    FusedActivation::describe(schema);
    schema.field("with_addend", &FusedConvolutionParams::with_addend)
        .default_value(false)
        .doc("Whether the last input is added to the product.");
    schema.check([](const FusedConvolutionParams& p) { check_convolution(p); });
  }
};

// Where no product with a rest exists: the product alone, then the rest over its result.
template <typename T>
class StepwiseKernel final : public Kernel {
 public:
  StepwiseKernel(Ref<Kernel> product, const FusedConvolutionParams& p) : product_(std::move(product)), p_(p) {}
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  void run(const KernelArgs& args) override {
    KernelArgs product = args;
    product.params = static_cast<const ConvolutionParams*>(&p_);
    product.in = args.in.first(p_.no_bias ? 2 : 3);
    product_->run(product);
    T* y = args.out[0].as<T>();
    const int64_t n = args.out[0].size();
    if (p_.with_addend) {
      const T* addend = args.in.back().as<T>();
      for (int64_t i = 0; i < n; ++i) y[i] += addend[i];
    }
    apply_activation(p_.FusedActivation::kernel(), y, n);
  }

 private:
  Ref<Kernel> product_;
  const FusedConvolutionParams p_;
};

Ref<Kernel> link_fused(const FusedConvolutionParams& p, const LinkContext& c) {
  const kernels::ConvGeometry g = conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c));
  const DType dtype = c.in[0].dtype;
  if (dtype != DType::kFloat64 && !g.empty()) {
    return link_conv(c, g,
                     {.kind = ConvKind::kForward,
                      .bias = !p.no_bias,
                      .add = p.with_addend,
                      .activation = p.FusedActivation::kernel()});
  }
  if (is_half(dtype)) return link_through_float(c, [&](const LinkContext& inner) { return link_fused(p, inner); });
  const Ref<Kernel> product = link_conv(c, g, {.kind = ConvKind::kForward, .bias = !p.no_bias});
  if (dtype == DType::kFloat64) return Ref<Kernel>(new StepwiseKernel<double>(product, p));
  return Ref<Kernel>(new StepwiseKernel<float>(product, p));
}

int inputs_of(const FusedConvolutionParams& p) { return 2 + (p.no_bias ? 0 : 1) + (p.with_addend ? 1 : 0); }

}  // namespace

void register_fused_convolution(OpRegistry& ops) {
  ops.declare<FusedConvolutionParams>("_fused_convolution")
      .internal()
      .doc("activation(Convolution(data, weight, bias) + addend).")
      .input("data", "as in Convolution")
      .input("weight", "as in Convolution")
      .optional_input("bias", "(num_filter,)")
      .optional_input("addend", "as the output; takes the place of bias when there is none")
      .output("output", "as in Convolution")
      .num_inputs(inputs_of)
      .infer([](const FusedConvolutionParams& p, InferContext& c) {
        infer_convolution(p, c);
        if (!p.with_addend) return;
        c.set_in_shape(inputs_of(p) - 1, c.out_shape(0));
        c.set_out_shape(0, c.in_shape(inputs_of(p) - 1));
      })
      .link(link_fused)
      .image({0}, {0})
      .gradient(kNotDifferentiable)
      .cost([](const FusedConvolutionParams& p, auto in, auto out) {
        return conv_cost_ns(conv_geometry(p, in[0].shape, out[0].shape, false), in[0].dtype);
      })
      .sample({{2, 4, 5, 6}, {4, 4, 3, 3}, {4}}, {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"act_type", "relu"}})
      .sample({{2, 4, 5, 6}, {4, 4, 3, 3}, {2, 4, 3, 4}}, {{"kernel", "(3, 3)"},
                                                           {"num_filter", "4"},
                                                           {"act_type", "relu"},
                                                           {"no_bias", "True"},
                                                           {"with_addend", "True"}})
      .sample({{2, 4, 5, 6}, {4, 4, 3, 3}, {4}, {2, 4, 3, 4}},
              {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"act_type", "tanh"}, {"with_addend", "True"}});
}

}  // namespace hybridnet::ops
