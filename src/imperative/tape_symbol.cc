#include "imperative/tape_symbol.h"

#include <algorithm>
#include <unordered_map>

#include "imperative/tape.h"

namespace hybridnet {
namespace {

// Returns the steps that `last` depends on, and `last` itself, oldest first: a step reads only earlier results.
std::vector<TapeNode*> steps_behind(TapeNode* last) {
  std::vector<TapeNode*> found{last};
  std::unordered_map<const TapeNode*, bool> seen{{last, true}};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const TapeNode::Input& input : found[i]->inputs) {
      TapeNode* before = input.mark ? input.mark->node.get() : nullptr;
      if (before != nullptr && seen.try_emplace(before, true).second) found.push_back(before);
    }
  }
  std::sort(found.begin(), found.end(), [](const TapeNode* a, const TapeNode* b) { return a->sequence < b->sequence; });
  return found;
}

class TapeToGraph {
 public:
  Symbol run(const TapeMark& head) {
    for (TapeNode* step : steps_behind(head.node.get())) add(*step);
    Symbol result;
    result.outputs = {made_.at(head.node.get()).at(head.index)};
    return result;
  }

 private:
  void add(const TapeNode& step) {
    std::vector<NodeEntry> inputs;
    for (const TapeNode::Input& input : step.inputs) inputs.push_back(entry_of(input));
    std::vector<NodeEntry>& outputs = made_[&step];
    if (step.op == nullptr) {
      std::vector<Value> values;
      for (const NodeEntry& input : inputs) values.push_back(to_value(input));
      for (const Value& value : step.function->as_graph(values)) outputs.push_back(to_entry(value));
      if (outputs.empty())
        throw GradientError({.op = step.name(),
                             .message = "a recorded step with a backward written in Python is no operator of a graph",
                             .fix = "build the graph from Symbols, with operators only",
                             .where = step.where});
      return;
    }
    const NodePtr node = make_node(*step.op, "node_" + std::to_string(num_nodes_++), step.params, std::move(inputs));
    node->where = step.where;
    for (uint32_t i = 0; i < static_cast<uint32_t>(node->num_outputs()); ++i) outputs.push_back({node, i});
  }

  // Arrays without a mark have no identity on the tape: each use of one becomes a variable of its own.
  NodeEntry entry_of(const TapeNode::Input& input) {
    const TapeMark* mark = input.mark.get();
    if (mark != nullptr && mark->node) return made_.at(mark->node.get()).at(mark->index);
    if (mark == nullptr) return {new_variable(), 0};
    NodePtr& leaf = leaves_[mark];
    if (!leaf) leaf = new_variable();
    return {leaf, 0};
  }

  NodePtr new_variable() { return make_variable("var" + std::to_string(num_variables_++)); }

  std::unordered_map<const TapeNode*, std::vector<NodeEntry>> made_;
  std::unordered_map<const TapeMark*, NodePtr> leaves_;
  int num_nodes_ = 0, num_variables_ = 0;
};

}  // namespace

Symbol recorded_graph(const NDArray& array) {
  const TapeMark* mark = mark_of(array);
  if (mark == nullptr || !mark->node)
    throw GradientError({.message = "the array was not computed while recording, so there is no graph of it",
                         .fix = "compute it inside 'with autograd.record():' from arrays that have attach_grad()"});
  return TapeToGraph().run(*mark);
}

}  // namespace hybridnet
