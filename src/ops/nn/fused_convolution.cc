// Convolution that adds another tensor and applies an activation before its result is stored. For prediction only:
// passes create it after differentiation.
#include <utility>

#include "hybridnet/declare.h"
#include "kernels/dnnl/conv_choice.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/isa.h"
#include "kernels/product/packed.h"
#include "op/through_float.h"
#include "ops/float_kernel.h"
#include "ops/nn/activation_params.h"
#include "ops/nn/convolution_params.h"

namespace hybridnet::ops {
namespace {

using kernels::ConvGeometry;
using onednn::ConvAlgorithm;
using onednn::ConvKind;
using onednn::Convolution;

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

// The steps that run as separate passes over the product.
struct Steps {
  bool add = false, activation = false;
};

// Runs the product, then the steps over it.
template <typename T>
class StepwiseKernel final : public Kernel, public kernels::ReadsPackedWeights {
 public:
  StepwiseKernel(Ref<Kernel> product, const Steps& steps, const onednn::Activation& activation)
      : product_(std::move(product)), steps_(steps), activation_(activation) {}
  int64_t workspace_bytes() const override { return product_->workspace_bytes(); }
  std::string description() const override { return product_->description(); }
  bool reads_packed(size_t input) const override {
    const auto* const packed = dynamic_cast<const ReadsPackedWeights*>(product_.get());
    return packed && packed->reads_packed(input);
  }
  void run(const KernelArgs& args) override {
    KernelArgs product = args;
    product.in = args.in.first(args.in.size() - (steps_.add ? 1 : 0));
    product_->run(product);
    T* const y = args.out[0].as<T>();
    if (steps_.add) {
      const void* const sum[] = {y, args.in.back().data};
      const kernels::SpanLoops& add = kernels::loops(kernels::Pointwise::kAdd);
      kernels::apply_parallel(add, dtype_of<T>::value, sum, y, args.out[0].size());
    }
    if (steps_.activation) apply_activation(activation_, y, args.out[0].size());
  }

 private:
  const Ref<Kernel> product_;
  const Steps steps_;
  const onednn::Activation activation_;
};

// Plain loops compute products only. Below AVX-512 oneDNN's exponentials take five times as long as ours (tanh after a
// convolution to 64x20x24x24: 1.3 ms on two cores, 0.28 ms in a separate pass), and it has only plain loops for a sum
// in plain memory.
Steps steps_for(const ConvGeometry& g, const Convolution::Options& options, bool may_round_more) {
  const bool ends = options.activation.kind != kernels::ActivationKind::kNone;
  const ConvAlgorithm algorithm = onednn::choose_convolution({g, options, may_round_more});
  if (algorithm == ConvAlgorithm::kReference) return {options.add, ends};
  if (algorithm != ConvAlgorithm::kDirect || options.dtype != DType::kFloat32) return {};
  const bool add = options.add && !g.channels_last;
  const bool is_simple = bounds_of(options.activation) || options.activation.kind == kernels::ActivationKind::kLeaky;
  const bool is_slow = !is_simple && kernels::isa_in_force().level < kernels::Isa::kAvx512;
  return {add, ends && (add || is_slow)};
}

Ref<Kernel> link_fused(const FusedConvolutionParams& p, const LinkContext& c) {
  const ConvGeometry g = conv_geometry(p, c.in[0].shape, c.out[0].shape, linked_channels_last(c));
  const DType dtype = c.in[0].dtype;
  const bool on_gpu = c.device.type == DeviceType::kGPU;
  if (is_half(dtype) && !on_gpu && !has_native_conv(dtype, g))
    return link_through_float(c, [&](const LinkContext& inner) { return link_fused(p, inner); });
  Convolution::Options options{.kind = ConvKind::kForward,
                               .dtype = dtype,
                               .bias = !p.no_bias,
                               .remember = c.frozen_weights,
                               .add = p.with_addend,
                               .activation = p.FusedActivation::kernel()};
  if (on_gpu) return link_conv(c, g, options);
  const onednn::Activation activation = options.activation;
  const Steps steps = steps_for(g, options, c.may_round_more);
  if (steps.add) options.add = false;
  if (steps.activation) options.activation = {};
  Ref<Kernel> product = link_conv(c, g, options);
  if (!steps.add && !steps.activation) return product;
  return make_float_kernel<StepwiseKernel>(dtype, std::move(product), steps, activation);
}

int inputs_of(const FusedConvolutionParams& p) { return 2 + (p.no_bias ? 0 : 1) + (p.with_addend ? 1 : 0); }

}  // namespace

void register_fused_convolution(OpRegistry& ops) {
  ops.declare<FusedConvolutionParams>("_fused_convolution")
      .internal()
      .doc("activation(Convolution(data, weight, bias) + addend).")
      .input("data", "same as in Convolution")
      .input("weight", "same as in Convolution")
      .optional_input("bias", "(num_filter,)")
      .optional_input("addend", "shape of the output; the third input if there is no bias")
      .output("output", "same as in Convolution")
      .num_inputs(inputs_of)
      .infer([](const FusedConvolutionParams& p, InferContext& c) {
        infer_convolution(p, c);
        if (!p.with_addend) return;
        c.set_in_shape(inputs_of(p) - 1, c.out_shape(0));
        c.set_out_shape(0, c.in_shape(inputs_of(p) - 1));
      })
      .any_device()
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
