#include "passes/canonical/value_numbers.h"

#include <algorithm>

#include "base/hash.h"
#include "graph/control/control_flow.h"

namespace hybridnet::passes {
namespace {

const OpRef kCopy{"_copy"};

bool same_bodies(const Node& one, const Node& other) {
  return std::equal(one.subgraphs.begin(), one.subgraphs.end(), other.subgraphs.begin(), other.subgraphs.end(),
                    [](const Ref<Subgraph>& a, const Ref<Subgraph>& b) { return a == b || same_body(*a, *b); });
}

}  // namespace

ValueNumbers::Number ValueNumbers::of(const OfNodes& numbers, const NodeEntry& entry) {
  const auto found = numbers.find(entry.node.get());
  return found == numbers.end() ? kUnknown : output(found->second, entry.index);
}

ValueNumbers::Number ValueNumbers::fresh(size_t outputs) {
  const Number first = next_;
  next_ += static_cast<Number>(outputs);
  return first;
}

ValueNumbers::Number ValueNumbers::outer(const NodeEntry& entry) {
  if (entry.node->constant) {
    const auto [found, added] = constants_.try_emplace(entry.node->constant.get(), next_);
    if (added) fresh(1);
    return found->second;
  }
  const auto [found, added] = outer_.try_emplace(entry, next_);
  if (added) fresh(1);
  return found->second;
}

void ValueNumbers::add(const std::vector<Node*>& nodes, OfNodes& numbers) {
  for (const Node* node : nodes) {
    if (node->is_variable()) {
      if (node->constant) numbers[node] = outer({NodePtr(const_cast<Node*>(node)), 0});
      continue;
    }
    std::vector<Number> operands;
    for (const NodeEntry& input : node->inputs) operands.push_back(of(numbers, input));
    if (std::find(operands.begin(), operands.end(), kUnknown) != operands.end() || is_random(*node) ||
        is_opaque(*node) || !node->control.empty() || node->attrs.count("__no_merge__") != 0)
      continue;
    numbers[node] = node->op == &kCopy.op() ? operands[0] : of_node(*node, std::move(operands));
  }
}

ValueNumbers::Number ValueNumbers::of_node(const Node& node, std::vector<Number> operands) {
  if (node.op->commutative && operands.size() >= 2 && operands[1] < operands[0]) std::swap(operands[0], operands[1]);
  uint64_t hash = mix_hash(node.op->schema->hash(node.params->data()), reinterpret_cast<uintptr_t>(node.op));
  for (Number operand : operands) hash = mix_hash(hash, static_cast<uint64_t>(operand));
  for (auto [it, end] = known_.equal_range(hash); it != end; ++it) {
    const Known& known = it->second;
    if (known.node->op == node.op && known.operands == operands && known.node->attrs == node.attrs &&
        node.op->schema->equal(known.node->params->data(), node.params->data()) && same_bodies(*known.node, node))
      return known.first;
  }
  const Number first = fresh(static_cast<size_t>(node.num_outputs()));
  known_.emplace(hash, Known{&node, std::move(operands), first});
  return first;
}

bool same_body(const Subgraph& one, const Subgraph& other) {
  if (one.inputs.size() != other.inputs.size() || one.outputs.size() != other.outputs.size()) return false;
  ValueNumbers numbers;
  ValueNumbers::OfNodes of_one, of_other;
  for (size_t i = 0; i < one.inputs.size(); ++i)
    of_one[one.inputs[i].get()] = of_other[other.inputs[i].get()] = numbers.outer({one.inputs[i], 0});
  numbers.add(topological_order(one.outputs), of_one);
  numbers.add(topological_order(other.outputs), of_other);
  return std::equal(one.outputs.begin(), one.outputs.end(), other.outputs.begin(),
                    [&](const NodeEntry& a, const NodeEntry& b) {
                      const ValueNumbers::Number number = ValueNumbers::of(of_one, a);
                      return number != ValueNumbers::kUnknown && number == ValueNumbers::of(of_other, b);
                    });
}

}  // namespace hybridnet::passes
