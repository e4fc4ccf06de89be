// Unlike conv_bn_fold, which prepares weights inside of a compiled graph, this returns a graph with other parameters:
// quantization must know the weights.
#include <unordered_map>

#include "passes/attributes.h"
#include "passes/quantize/quantize.h"

namespace hybridnet::passes {
namespace {

const OpRef kPlusScalar{"_plus_scalar"}, kRsqrt{"rsqrt"}, kMul{"elemwise_mul"}, kBroadcastMul{"broadcast_mul"},
    kSub{"elemwise_sub"}, kAdd{"elemwise_add"}, kReshape{"Reshape"};

class Folding {
 public:
  Folding(const Symbol& symbol, const std::set<std::string>& except)
      : symbol_(symbol), except_(except), order_(topological_order(symbol.outputs)) {
    for (const Node* node : order_) {
      if (node->is_variable()) names_.insert(node->name);
      for (const NodeEntry& input : node->inputs) ++num_readers_[input];
    }
    for (const NodeEntry& output : symbol.outputs) ++num_readers_[output];
  }

  NewValues run() {
    for (const Node* node : order_)
      if (!node->is_variable() && node->op->name == "BatchNorm" && may_fold(*node)) fold(*node);
    NewValues result;
    for (Node* node : order_) visit(*node);
    for (const NodeEntry& output : symbol_.outputs) result.symbol.outputs.push_back(now(output));
    result.values = std::move(values_);
    return result;
  }

 private:
  bool is_own_variable(const NodeEntry& entry) const {  // nothing else reads it
    return entry.node->is_variable() && num_readers_.at(entry) == 1;
  }

  // True if axis 1 of the layer's output is its channels, and its weights have one row per channel.
  static bool has_rows_of_channels(const Node& layer, const Node& norm) {
    if (number_attribute(norm, "axis", 1) != 1) return false;
    if (layer.op->name == "FullyConnected") return bool_attribute(layer, "flatten", true);
    const std::string layout = text_attribute(layer, "layout");
    return layer.op->name == "Convolution" && (layout.empty() || layout[1] == 'C');
  }

  bool may_fold(const Node& norm) const {
    const NodeEntry& data = norm.inputs[0];
    const Node& layer = *data.node;
    if (layer.is_variable() || data.index != 0 || num_readers_.at(data) != 1 || !has_rows_of_channels(layer, norm))
      return false;
    if (except_.count(norm.name) != 0 || except_.count(layer.name) != 0) return false;
    for (uint32_t i = 1; i < static_cast<uint32_t>(norm.num_outputs()); ++i)
      if (num_readers_.count({NodePtr(const_cast<Node*>(&norm)), i}) != 0) return false;
    for (size_t i = 1; i < norm.inputs.size(); ++i)
      if (!norm.inputs[i].node->is_variable()) return false;
    for (size_t i = 1; i < layer.inputs.size(); ++i)
      if (!is_own_variable(layer.inputs[i])) return false;
    return layer.inputs.size() > 2 || names_.count(layer.name + "_bias") == 0;
  }

  static NodeEntry make(const OpRef& op, std::vector<NodeEntry> inputs,
                        const std::vector<std::pair<std::string, AttrValue>>& attrs = {}) {
    return {make_node(op.op(), op.name(), make_params(op.op(), nullptr, attrs), std::move(inputs)), 0};
  }

  // Reshapes (channels,) to (channels, 1, ...) of the weight's rank.
  static NodeEntry rows(const NodeEntry& scale, const Node& layer) {
    AttrValue::List shape{AttrValue(-1)};
    const int spatial = layer.op->name == "Convolution" ? tuple_size(attribute(layer, "kernel")) : 0;
    shape.resize(static_cast<size_t>(spatial) + 2, AttrValue(1));
    return make(kReshape, {scale}, {{"shape", AttrValue(shape)}});
  }

  static int tuple_size(const AttrValue& tuple) {
    const auto* list = std::get_if<AttrValue::List>(&tuple.value);
    return list == nullptr ? 0 : static_cast<int>(list->size());
  }

  // scale = gamma / sqrt(variance + eps); weights scale * w; bias beta + scale * (b - mean).
  void fold(const Node& norm) {
    Node& layer = *norm.inputs[0].node;
    const NodeEntry &gamma = norm.inputs[1], &beta = norm.inputs[2], &mean = norm.inputs[3];
    const NodeEntry shifted = make(kPlusScalar, {norm.inputs[4]}, {{"scalar", number_attribute(norm, "eps", 1e-3)}});
    NodeEntry scale = make(kRsqrt, {shifted});
    if (!bool_attribute(norm, "fix_gamma", true)) scale = make(kMul, {gamma, scale});
    const bool has_bias = layer.inputs.size() > 2;
    const NodeEntry bias = has_bias ? make(kAdd, {beta, make(kMul, {make(kSub, {layer.inputs[2], mean}), scale})})
                                    : make(kSub, {beta, make(kMul, {mean, scale})});
    const NodeEntry bias_variable = has_bias ? layer.inputs[2] : NodeEntry{make_variable(layer.name + "_bias"), 0};
    values_.emplace_back(layer.inputs[1].node->name,
                         Symbol{{make(kBroadcastMul, {layer.inputs[1], rows(scale, layer)})}});
    values_.emplace_back(bias_variable.node->name, Symbol{{bias}});
    folded_[&norm] = {&layer, bias_variable};
  }

  NodeEntry now(const NodeEntry& e) const { return {done_.at(e.node.get()), e.index}; }

  void visit(Node& node) {
    const auto fold = folded_.find(&node);
    const Node& kept = fold == folded_.end() ? node : *fold->second.layer;
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& e : kept.inputs) inputs.push_back(now(e));
    NodePtr& made = done_[&node];
    made = NodePtr(&node);
    if (fold == folded_.end() && inputs == node.inputs && node.control.empty()) return;
    if (fold != folded_.end()) {
      inputs.resize(2);
      inputs.push_back(fold->second.bias);
    }
    made = copy_of(kept, std::move(inputs));
    if (fold != folded_.end()) {
      made->params = make_params(*kept.op, &kept, {{"no_bias", false}});
      made->attrs[kStandsFor] = Symbol{{NodeEntry{NodePtr(&node), 0}}}.list_outputs()[0];
    }
    for (const NodePtr& before : kept.control) made->control.push_back(now({before, 0}).node);
  }

  struct Folded {
    Node* layer;
    NodeEntry bias;
  };
  const Symbol& symbol_;
  const std::set<std::string>& except_;
  std::vector<Node*> order_;
  std::set<std::string> names_;  // names of variables
  std::unordered_map<NodeEntry, int, NodeEntryHash> num_readers_;
  std::unordered_map<const Node*, Folded> folded_;  // BatchNorm -> layer that takes it in
  std::vector<std::pair<std::string, Symbol>> values_;
  std::unordered_map<const Node*, NodePtr> done_;
};

}  // namespace

NewValues fold_batch_norms(const Symbol& symbol, const std::set<std::string>& except) {
  return Folding(symbol, except).run();
}

}  // namespace hybridnet::passes
