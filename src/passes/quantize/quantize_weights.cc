// Replaces layers by their forms with weights of bytes.
#include <algorithm>
#include <unordered_map>

#include "passes/attributes.h"
#include "passes/quantize/quantize.h"

namespace hybridnet::passes {
namespace {

struct Form {
  // All read the weight as input 1, and the others its scale as input 2.
  OpRef layer, weight_only, rounding;
};
const Form kForms[] = {
    {OpRef{"FullyConnected"}, OpRef{"_contrib_weight_only_fully_connected"},
     OpRef{"_contrib_dynamic_quantized_fully_connected"}},
    {OpRef{"Embedding"}, OpRef{"_contrib_weight_only_embedding"}, OpRef{"_contrib_weight_only_embedding"}},
};
constexpr size_t kWeight = 1;

class WeightQuantization {
 public:
  WeightQuantization(const Symbol& symbol, const QuantizeOptions& options, bool rounds_data)
      : symbol_(symbol), options_(options), rounds_data_(rounds_data) {}

  WeightQuantizedSymbol run() {
    for (Node* node : topological_order(symbol_.outputs)) visit(*node);
    for (const NodeEntry& output : symbol_.outputs) result_.symbol.outputs.push_back(now(output));
    return std::move(result_);
  }

 private:
  // Null if the node stays.
  const Form* form_of(const Node& node) const {
    if (node.is_variable() || options_.excluded_nodes.count(node.name) != 0) return nullptr;
    const auto* const form =
        std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) { return node.op == &f.layer.op(); });
    if (form == std::end(kForms)) return nullptr;
    const auto is_excluded = [&](const std::string& name) { return options_.excluded_ops.count(name) != 0; };
    if (is_excluded(node.op->name) || std::any_of(node.op->aliases.begin(), node.op->aliases.end(), is_excluded))
      return nullptr;
    const Node& weight = *node.inputs[kWeight].node;
    return weight.is_variable() && options_.parameters.count(weight.name) != 0 ? form : nullptr;
  }

  NodeEntry now(const NodeEntry& entry) const { return {done_.at(entry.node.get()), entry.index}; }

  // The variables that stand for a weight: its bytes and its scale.
  const std::pair<NodeEntry, NodeEntry>& bytes_of(const std::string& weight) {
    const auto [at, is_new] = bytes_.try_emplace(weight);
    if (is_new) {
      result_.weights.insert(weight);
      at->second = {{make_variable(weight + "_quantize"), 0}, {make_variable(weight + "_quantize_scale"), 0}};
    }
    return at->second;
  }

  void visit(Node& node) {
    NodePtr& made = done_[&node];
    made = NodePtr(&node);
    if (node.is_variable()) return;
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(now(input));
    const Form* const form = form_of(node);
    if (form == nullptr) {
      if (inputs == node.inputs && node.control.empty()) return;
      made = copy_of(node, std::move(inputs));
    } else {
      const auto& [bytes, scale] = bytes_of(node.inputs[kWeight].node->name);
      inputs[kWeight] = bytes;
      inputs.insert(inputs.begin() + kWeight + 1, scale);
      const Op& op = (rounds_data_ ? form->rounding : form->weight_only).op();
      made = make_node(op, "quantized_" + node.name, make_params(op, &node, {}), std::move(inputs));
      made->where = node.where;
      made->block = node.block;
    }
    for (const NodePtr& before : node.control) made->control.push_back(done_.at(before.get()));
  }

  const Symbol& symbol_;
  const QuantizeOptions& options_;
  const bool rounds_data_;
  WeightQuantizedSymbol result_;
  std::unordered_map<const Node*, NodePtr> done_;
  std::unordered_map<std::string, std::pair<NodeEntry, NodeEntry>> bytes_;
};

}  // namespace

WeightQuantizedSymbol quantize_weights(const Symbol& symbol, const QuantizeOptions& options, bool rounds_data) {
  return WeightQuantization(symbol, options, rounds_data).run();
}

}  // namespace hybridnet::passes
