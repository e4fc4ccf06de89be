// 3x3 convolutions over channels-last images that are large enough go through Winograd's algorithm, forward and
// backward. Late, so that bias, sum and activation are in the node already. Rounding differs from the direct sum's:
// exclude "winograd" where that matters.
#include <memory>

#include "kernels/dnnl/conv_choice.h"
#include "kernels/dnnl/winograd.h"
#include "passes/attributes.h"
#include "passes/rules.h"
#include "passes/size_questions.h"
#include "passes/stand_in.h"

namespace hybridnet::passes {
namespace {

using kernels::ConvGeometry;
using onednn::ConvAlgorithm;
using onednn::ConvKind;
using onednn::Convolution;
using onednn::ConvQuestion;
using onednn::Winograd;

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

ConvKind kind_of(const Op& op) {
  if (op.name == "_conv_backward_data") return ConvKind::kBackwardData;
  return op.name == "_conv_backward_weights" ? ConvKind::kBackwardWeights : ConvKind::kForward;
}

// Where a convolution or one of its gradients has its image (data, or their gradient) and its result (or its gradient).
struct Places {
  explicit Places(ConvKind kind)
      : image_is_output(kind == ConvKind::kBackwardData), result_is_output(kind == ConvKind::kForward) {
    result_input = kind == ConvKind::kBackwardWeights ? 1 : 0;
  }
  template <typename T>
  const T& image(std::span<const T> in, std::span<const T> out) const {
    return image_is_output ? out[0] : in[0];
  }
  template <typename T>
  const T& result(std::span<const T> in, std::span<const T> out) const {
    return result_is_output ? out[0] : in[result_input];
  }
  bool image_is_output, result_is_output;
  size_t result_input;
};

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

// All but sizes of images and what the call says. False when the node is not a plain convolution of images.
bool describe(const Node& node, ConvQuestion& question) {
  const std::vector<int64_t> kernel = numbers(node, "kernel", 0), stride = numbers(node, "stride", 1),
                             dilate = numbers(node, "dilate", 1), pad = numbers(node, "pad", 0);
  if (kernel.size() != 2 || stride.size() != 2 || dilate.size() != 2 || pad.size() != 2) return false;
  ConvGeometry& g = question.geometry;
  g.groups = static_cast<int64_t>(number_attribute(node, "num_group", 1));
  g.channels_last = true;
  for (size_t i = 0; i < 2; ++i) {
    g.kernel[i + 1] = kernel[i];
    g.stride[i + 1] = stride[i];
    g.dilate[i + 1] = dilate[i];
    g.pad[i + 1] = pad[i];
  }
  Convolution::Options& options = question.options;
  options.kind = kind_of(*node.op);
  options.bias = options.kind != ConvKind::kBackwardData && !bool_attribute(node, "no_bias", false);
  options.add = bool_attribute(node, "with_addend", false);
  const std::string activation = text_attribute(node, "act_type");
  if (activation == "relu") options.activation.kind = onednn::ActivationKind::kRelu;
  question.may_round_more = true;
  return activation.empty() || activation == "none" || activation == "relu";
}

void set_sizes(ConvGeometry& g, const Shape& image, const Shape& result) {
  g.n = image[0];
  g.c = image[1];
  g.o = result[1];
  for (size_t i = 0; i < 2; ++i) {
    g.in[i + 1] = image[static_cast<int>(i) + 2];
    g.out[i + 1] = result[static_cast<int>(i) + 2];
  }
}

using Specs = std::span<const TensorSpec>;

ConvQuestion question_of(const StandIn& p, Specs in, Specs out) {
  ConvQuestion question;
  describe(*make_node(*p.op, "", p.params, {}), question);
  const Places places(question.options.kind);
  set_sizes(question.geometry, places.image(in, out).shape, places.result(in, out).shape);
  return question;
}

std::unique_ptr<Op> make_op() {
  auto op =
      make_stand_in_op("_winograd_convolution", "A 3x3 convolution or one of its gradients by Winograd's algorithm.");
  OpBuilder<StandIn>(*op)
      .link([](const StandIn& p, const LinkContext& c) {
        ConvQuestion question = question_of(p, c.in, c.out);
        question.options.remember = c.frozen_weights;
        return Ref<Kernel>(new WinogradKernel(question.geometry, question.options));
      })
      .cost([](const StandIn& p, Specs in, Specs out) {
        return static_cast<int64_t>(question_of(p, in, out).geometry.flops() / 100.0) + 1000;
      });
  return op;
}

const Op& winograd_op() {
  static const Op& op = *make_op().release();  // lives as long as plans may
  return op;
}

}  // namespace

Replacement winograd(Graph& graph, Node& node) {
  const Places places(kind_of(*node.op));
  const NodeEntry output{NodePtr(&node), 0};
  const std::span<const NodeEntry> in = node.inputs, out{&output, 1};
  const NodeEntry image = places.image(in, out), result = places.result(in, out);
  for (const NodeEntry& entry : {image, result}) {
    const TensorSpec& spec = graph.spec(entry);
    if (graph.format(entry) != Format::kChannelsLast || spec.dtype != DType::kFloat32 || spec.shape.ndim() != 4)
      return no_change();
  }
  ConvQuestion question;
  if (!describe(node, question)) return no_change();
  const auto pays = [question](std::span<const Shape> shapes) mutable {
    set_sizes(question.geometry, shapes[0], shapes[1]);
    return onednn::choose_convolution(question) == ConvAlgorithm::kWinograd4x4;
  };
  if (!ask_sizes({graph.spec(image).shape, graph.spec(result).shape}, pays)) return no_change();
  const ParamsPtr params = make_stand_in_params({node.op, node.params, {}, {}});
  const NodePtr fast = graph.add(winograd_op(), params, node.inputs, &node);
  Replacement replacement;
  for (uint32_t i = 0; i < node.specs.size(); ++i) {
    graph.set_format({fast, i}, graph.format({NodePtr(&node), i}));
    replacement.outputs.push_back({fast, i});
  }
  return replacement;
}

}  // namespace hybridnet::passes
