// 3x3 convolutions over channels-last images that are large enough go through Winograd's algorithm, forward and
// backward. Late, so that bias, sum and activation are in the node already. Rounding differs from the direct sum's:
// exclude "winograd" where that matters.
#include <memory>

#include "kernels/dnnl/conv_choice.h"
#include "kernels/dnnl/winograd.h"
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

using kernels::ConvGeometry;
using onednn::ConvAlgorithm;
using onednn::ConvKind;
using onednn::Convolution;
using onednn::Winograd;

// One such convolution; inputs and outputs are those of the node that it replaces.
struct WinogradParams {
  ConvGeometry geometry;
  Convolution::Options options;
  std::vector<TensorSpec> outputs;
};

class WinogradKernel final : public Kernel {
 public:
  WinogradKernel(const ConvGeometry& g, const Convolution::Options& options)
      : options_(options), winograd_(g, options) {}
  int64_t workspace_bytes() const override { return winograd_.workspace_bytes(); }
  std::string description() const override { return "winograd:4x4"; }
  void run(const KernelArgs& args) override {
    Convolution::Tensors t;
    t.a = args.in[0].data;
    t.b = args.in[1];
    t.workspace = args.workspace;
    t.out0 = args.out[0].data;
    if (options_.kind == ConvKind::kBackwardWeights) {
      if (options_.bias) t.out1 = args.out[1].data;
    } else {
      if (options_.bias) t.c = args.in[2].data;
      if (options_.add) t.d = args.in.back().data;
    }
    winograd_.run(t);
  }

 private:
  const Convolution::Options options_;
  Winograd winograd_;
};

std::unique_ptr<Op> make_op() {
  auto op = std::make_unique<Op>();
  op->name = "_winograd_convolution";
  op->schema = std::make_unique<ParamSchema<WinogradParams>>();
  OpBuilder<WinogradParams>(*op)
      .doc("A 3x3 convolution or one of its gradients by Winograd's algorithm.")
      .variadic_input("data", "")
      .num_outputs([](const WinogradParams& p) { return static_cast<int>(p.outputs.size()); })
      .infer([](const WinogradParams& p, InferContext& c) {
        for (int i = 0; i < c.num_out(); ++i) {
          c.set_out_shape(i, p.outputs[static_cast<size_t>(i)].shape);
          c.set_out_dtype(i, p.outputs[static_cast<size_t>(i)].dtype);
        }
      })
      .link([](const WinogradParams& p, const LinkContext& c) {
        Convolution::Options options = p.options;
        options.remember = c.frozen_weights;
        return Ref<Kernel>(new WinogradKernel(p.geometry, options));
      })
      .gradient(kNotDifferentiable)
      .internal()
      .cost([](const WinogradParams& p, std::span<const TensorSpec>, std::span<const TensorSpec>) {
        return static_cast<int64_t>(p.geometry.flops() / 100.0) + 1000;
      });
  return op;
}

const Op& winograd_op() {
  static const Op& op = *make_op().release();  // lives as long as plans may
  return op;
}

std::vector<int64_t> numbers(const Node& node, const char* name, int64_t otherwise) {
  std::vector<int64_t> values;
  const AttrValue given = attribute(node, name);
  if (const auto* list = std::get_if<AttrValue::List>(&given.value)) {
    for (const AttrValue& v : *list) {
      if (const auto* number = std::get_if<int64_t>(&v.value)) values.push_back(*number);
    }
  }
  if (values.empty()) values.assign(2, otherwise);
  return values;
}

// x and y as in ConvGeometry. False when the node is not a plain convolution of images.
bool describe(const Node& node, const Shape& x, const Shape& y, ConvGeometry& g) {
  if (x.ndim() != 4 || y.ndim() != 4) return false;
  const std::vector<int64_t> kernel = numbers(node, "kernel", 0), stride = numbers(node, "stride", 1),
                             dilate = numbers(node, "dilate", 1), pad = numbers(node, "pad", 0);
  if (kernel.size() != 2 || stride.size() != 2 || dilate.size() != 2 || pad.size() != 2) return false;
  g.n = x[0];
  g.c = x[1];
  g.o = y[1];
  g.groups = static_cast<int64_t>(number_attribute(node, "num_group", 1));
  g.channels_last = true;
  for (size_t i = 0; i < 2; ++i) {
    g.in[i + 1] = x[static_cast<int>(i) + 2];
    g.out[i + 1] = y[static_cast<int>(i) + 2];
    g.kernel[i + 1] = kernel[i];
    g.stride[i + 1] = stride[i];
    g.dilate[i + 1] = dilate[i];
    g.pad[i + 1] = pad[i];
  }
  return true;
}

}  // namespace

Replacement winograd(Graph& graph, Node& node) {
  WinogradParams p;
  const std::string& name = node.op->name;
  const bool data = name == "_conv_backward_data", weights = name == "_conv_backward_weights";
  const NodeEntry image = data ? NodeEntry{NodePtr(&node), 0} : node.inputs[0];
  const NodeEntry result = data ? node.inputs[0] : weights ? node.inputs[1] : NodeEntry{NodePtr(&node), 0};
  for (const NodeEntry& entry : {image, result}) {
    if (graph.format(entry) != Format::kChannelsLast || graph.spec(entry).dtype != DType::kFloat32) return no_change();
  }
  if (!describe(node, graph.spec(image).shape, graph.spec(result).shape, p.geometry)) return no_change();
  p.options.kind = data ? ConvKind::kBackwardData : weights ? ConvKind::kBackwardWeights : ConvKind::kForward;
  p.options.bias = !data && !bool_attribute(node, "no_bias", false);
  p.options.add = bool_attribute(node, "with_addend", false);
  if (const std::string activation = text_attribute(node, "act_type"); activation == "relu") {
    p.options.activation.kind = onednn::ActivationKind::kRelu;
  } else if (!activation.empty() && activation != "none") {
    return no_change();
  }
  if (onednn::choose_convolution({p.geometry, p.options, /*may_round_more=*/true}) != ConvAlgorithm::kWinograd4x4)
    return no_change();
  p.outputs = node.specs;
  const NodePtr fast = graph.add(winograd_op(), ParamSchema<WinogradParams>::box(std::move(p)), node.inputs, &node);
  Replacement replacement;
  for (uint32_t i = 0; i < node.specs.size(); ++i) {
    graph.set_format({fast, i}, graph.format({NodePtr(&node), i}));
    replacement.outputs.push_back({fast, i});
  }
  return replacement;
}

}  // namespace hybridnet::passes
