// Prediction: a convolution or dense layer followed by BatchNorm is one layer with other weights. The new weights are
// nodes marked as preparation: computed again only when the parameters change, not in every call.
#include "passes/attributes.h"
#include "passes/preparation.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kPlusScalar{"_plus_scalar"}, kRsqrt{"rsqrt"}, kMul{"elemwise_mul"}, kBroadcastMul{"broadcast_mul"},
    kSub{"elemwise_sub"}, kReshape{"Reshape"}, kRelu{"relu"}, kCast{"Cast"};

struct Norm {
  Node* node = nullptr;
  NodeEntry gamma, beta, mean, variance;
  double eps = 0;
  bool unit_gamma = false, relu = false;
};

bool only_first_output_is_used(const Graph& graph, const Node& node) {
  for (int i = 1; i < static_cast<int>(node.specs.size()); ++i) {
    if (graph.is_used(node, i)) return false;
  }
  return true;
}

// The weight that a preparation casts to 16 bits: it is scaled in the type that it is kept in.
NodeEntry before_cast(const NodeEntry& weight) {
  return is_first_of(weight, kCast) && is_preparation(*weight.node) ? weight.node->inputs[0] : weight;
}

// True if axis 1 of the layer's output is its channels, and its weights have one row per channel.
bool may_scale(const Graph& graph, const Node& layer, const Node& norm) {
  const bool dense = layer.op->name == "FullyConnected";
  if (!dense && layer.op->name != "Convolution") return false;
  const std::string layout = text_attribute(layer, "layout");
  if (!layout.empty() && layout[1] != 'C') return false;
  const int ndim = layer.specs[0].shape.ndim();
  const double axis = number_attribute(norm, "axis", 1);
  if (axis != 1 && axis + ndim != 1) return false;
  if (dense && ndim != 2) return false;
  if (layer.inputs.size() > 2 && graph.spec(layer.inputs[2]).shape.ndim() != 1) return false;  // a bias may be a column
  const DType weight = graph.spec(layer.inputs[1]).dtype, statistics = graph.spec(norm.inputs[1]).dtype;
  return weight == statistics || (is_half(weight) && statistics == DType::kFloat32);
}

class Folding {
 public:
  Folding(Graph& graph, Node& layer, const Norm& norm) : graph_(graph), layer_(layer), norm_(norm) {}

  NodeEntry run() {
    // scale = gamma / sqrt(variance + eps); weights scale * w; bias beta + scale * (b - mean).
    NodeEntry scale = make(kRsqrt, {make(kPlusScalar, {norm_.variance}, {{"scalar", norm_.eps}})});
    if (!norm_.unit_gamma) scale = make(kMul, {norm_.gamma, scale});
    const NodeEntry weight = make(kBroadcastMul, {as_statistics(layer_.inputs[1]), rows(scale)});
    const bool has_bias = layer_.inputs.size() > 2;
    NodeEntry bias;
    if (has_bias) {
      const NodeEntry shifted = make(kMul, {make(kSub, {as_statistics(layer_.inputs[2]), norm_.mean}), scale});
      bias = make(OpRef{"elemwise_add"}, {norm_.beta, shifted});
    } else {
      bias = make(kSub, {norm_.beta, make(kMul, {norm_.mean, scale})});
    }
    const ParamsPtr params = make_params(*layer_.op, &layer_, {{"no_bias", false}});
    const NodePtr folded =
        graph_.add(*layer_.op, params, {layer_.inputs[0], as_layer(weight), as_layer(bias)}, &layer_);
    const Format format = graph_.format({NodePtr(norm_.node), 0});
    graph_.set_format({folded, 0}, format);
    if (!norm_.relu) return {folded, 0};
    const NodePtr relu = graph_.add(kRelu.op(), kRelu.op().default_params, {NodeEntry{folded, 0}}, norm_.node);
    graph_.set_format({relu, 0}, format);
    return {relu, 0};
  }

 private:
  NodeEntry make(const OpRef& op, std::vector<NodeEntry> inputs,
                 const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) {
    const ParamsPtr params = attrs.empty() ? op.op().default_params : make_params(op.op(), nullptr, attrs);
    const NodePtr node = graph_.add(op.op(), params, std::move(inputs), norm_.node);
    mark_as_preparation(*node);
    return {node, 0};
  }

  NodeEntry cast(const NodeEntry& entry, const NodeEntry& like) {
    const DType dtype = graph_.spec(like).dtype;
    return graph_.spec(entry).dtype == dtype ? entry : make(kCast, {entry}, {{"dtype", dtype_name(dtype)}});
  }
  NodeEntry as_statistics(const NodeEntry& weight) { return cast(before_cast(weight), norm_.mean); }
  NodeEntry as_layer(const NodeEntry& weight) { return cast(weight, layer_.inputs[0]); }

  // Reshapes (channels,) to (channels, 1, ...) of the weight's rank.
  NodeEntry rows(const NodeEntry& scale) {
    AttrValue::List shape{AttrValue(graph_.spec(scale).shape[0])};
    for (int i = 1; i < graph_.spec(layer_.inputs[1]).shape.ndim(); ++i) shape.emplace_back(1);
    return make(kReshape, {scale}, {{"shape", AttrValue(shape)}});
  }

  Graph& graph_;
  Node& layer_;
  const Norm& norm_;
};

}  // namespace

Replacement conv_bn_fold(Graph& graph, Node& node) {
  if (graph.train() || !only_first_output_is_used(graph, node)) return no_change();
  Node& layer = *node.inputs[0].node;
  if (layer.is_variable() || graph.only_reader(node.inputs[0]) != &node || !may_scale(graph, layer, node))
    return no_change();
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!is_parameter(graph, node.inputs[i])) return no_change();
  }
  for (size_t i = 1; i < layer.inputs.size(); ++i) {
    if (!is_parameter(graph, layer.inputs[i])) return no_change();
  }
  Norm norm{&node,
            node.inputs[1],
            node.inputs[2],
            node.inputs[3],
            node.inputs[4],
            number_attribute(node, "eps", 1e-3),
            bool_attribute(node, "fix_gamma", true),
            node.op->name == "_contrib_BatchNormWithReLU"};
  Replacement result = replace_with(Folding(graph, layer, norm).run());
  result.outputs.resize(node.specs.size());
  return result;
}

}  // namespace hybridnet::passes
