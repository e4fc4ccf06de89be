// Mixed precision: products compute in 16 bits, operators that need precision or range in 32 bits, and the others in
// the type of their inputs (Op::amp). Inputs, outputs and states of the graph keep their types.
#include <algorithm>
#include <optional>
#include <utility>

#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCast{"Cast"}, kGradient{"_gradient"};

// The type for a use of an operator: uses for which `amp_when` does not hold run in the type of their inputs.
AmpType type_of(const Node& node) {
  const Op& op = *node.op;
  if (op.predicts) return AmpType::kFloat;
  if (op.amp_when && !op.amp_when(node.params->data())) return AmpType::kAny;
  return op.amp;
}

// True if the outputs are values of the inputs, or functions of one element each, so that their type may follow. Other
// operators may return counts or positions, and 16-bit floats do not represent all integers of four digits.
bool follows_inputs(const Node& node) {
  const Op& op = *node.op;
  return op.pointwise || op.format_agnostic || op.is_view || op.takes_part_of_input || op.is_identity ||
         !op.image_inputs.empty();
}

class Casts {
 public:
  Casts(Graph& graph, DType half) : graph_(graph), half_(half) {}

  bool run() {
    std::vector<NodePtr> nodes;
    for (Node* node : graph_.order())
      if (!node->is_variable() && node->subgraphs.empty() && node->op != &kGradient.op()) nodes.emplace_back(node);
    bool changed = false;
    for (const NodePtr& node : nodes)
      if (graph_.contains(node.get())) changed = convert(*node) || changed;
    if (changed) graph_.remove_unused();
    return changed;
  }

 private:
  bool is_float(const NodeEntry& entry) const { return graph_.spec(entry).dtype == DType::kFloat32; }

  // The entry in 16 bits if a node computes it so; null otherwise.
  NodeEntry known_half(const NodeEntry& entry) const {
    const auto found = halves_.find(entry);
    return found == halves_.end() ? NodeEntry{} : found->second;
  }

  NodeEntry as_half(const NodeEntry& entry, const Node& reader) {
    if (const NodeEntry half = known_half(entry); half.node) return half;
    NodeEntry& made = casts_[entry];
    if (!made.node) made = cast(entry, half_, reader);
    return made;
  }

  NodeEntry cast(const NodeEntry& entry, DType dtype, const Node& origin) {
    return emit(graph_, kCast, {entry}, {{"dtype", dtype_name(dtype)}}, &origin);
  }

  // The inputs of the node in mixed precision; nullopt: it keeps those that it has.
  std::optional<std::vector<NodeEntry>> inputs_of(const Node& node) {
    switch (type_of(node)) {
      case AmpType::kHalf:
      case AmpType::kProduct:
        return all_half(node);
      case AmpType::kWidest:
        return are_half_where_large(node) ? all_half(node) : std::nullopt;
      case AmpType::kAny:
        if (node.op->written_input > 0) return written_half(node);
        if (node.inputs.empty() || !known_half(node.inputs[0]).node || !follows_inputs(node)) return std::nullopt;
        return halves_that_exist(node);
      case AmpType::kFloat:
        break;
    }
    return std::nullopt;
  }

  std::optional<std::vector<NodeEntry>> all_half(const Node& node) {
    if (std::none_of(node.inputs.begin(), node.inputs.end(), [&](const NodeEntry& e) { return is_float(e); }))
      return std::nullopt;
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(is_float(input) ? as_half(input, node) : input);
    return inputs;
  }

  // An array in 16 bits takes values in 16 bits; the other inputs are positions.
  std::optional<std::vector<NodeEntry>> written_half(const Node& node) {
    const NodeEntry array = known_half(node.inputs[0]);
    if (!array.node) return std::nullopt;
    std::vector<NodeEntry> inputs = node.inputs;
    NodeEntry& written = inputs[static_cast<size_t>(node.op->written_input)];
    written = as_half(written, node);
    inputs[0] = array;
    return inputs;
  }

  std::vector<NodeEntry> halves_that_exist(const Node& node) const {
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) {
      const NodeEntry half = known_half(input);
      inputs.push_back(half.node ? half : input);
    }
    return inputs;
  }

  // True for two or more inputs if some are in 16 bits, and all with the shape of the result: others are broadcast, a
  // bias for example, and their type decides nothing. If no input has that shape, all must be in 16 bits.
  bool are_half_where_large(const Node& node) const {
    bool any_half = false, any_large = false, large = true, all = true;
    for (const NodeEntry& input : node.inputs) {
      const bool known = known_half(input).node != nullptr, half = known || !is_float(input);
      any_half = any_half || known;
      all = all && half;
      if (!(graph_.spec(input).shape == node.specs[0].shape)) continue;
      any_large = true;
      large = large && half;
    }
    return node.inputs.size() > 1 && any_half && (any_large ? large : all);
  }

  bool convert(Node& node) {
    std::optional<std::vector<NodeEntry>> inputs = inputs_of(node);
    if (!inputs) return false;
    const NodePtr made = added(node, std::move(*inputs));
    if (!made) return false;
    made->attrs = node.attrs;
    graph_.make_as_old_as(*made, node);
    const NodePtr keep(&node);
    for (uint32_t i = 0; i < keep->specs.size() && graph_.contains(keep.get()); ++i) {
      const NodeEntry before{keep, i}, now{made, i};
      if (graph_.spec(now) == graph_.spec(before)) {
        graph_.replace(before, now);
      } else if (graph_.is_used(*keep, static_cast<int>(i))) {
        const NodeEntry wide = cast(now, graph_.spec(before).dtype, *keep);
        halves_[wide] = now;
        graph_.replace(before, wide);
      }
    }
    return true;
  }

  // The operator on these inputs; null if it has no kernel for their types.
  NodePtr added(const Node& node, std::vector<NodeEntry> inputs) {
    try {
      return graph_.add(*node.op, node.params, std::move(inputs), &node);
    } catch (const DTypeError&) {
      return nullptr;
    }
  }

  Graph& graph_;
  DType half_;
  EntryMap halves_;  // values in 32 bits that are casts of values in 16 bits
  EntryMap casts_;
};

}  // namespace

bool mixed_bfloat16(Graph& graph) { return Casts(graph, DType::kBFloat16).run(); }
bool mixed_float16(Graph& graph) { return Casts(graph, DType::kFloat16).run(); }

}  // namespace hybridnet::passes
