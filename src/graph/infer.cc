// Inference over a graph: runs every node's rule forwards, then backwards, until no rule adds a fact.
#include <algorithm>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

struct Use {
  Node* node;
  std::vector<TensorSpec*> in, out;
  bool complete = false;  // all specs were known when the rule last ran, so it can add nothing
};

bool all_known(const Use& use) {
  auto known = [](const TensorSpec* s) { return s->known(); };
  return std::all_of(use.in.begin(), use.in.end(), known) && std::all_of(use.out.begin(), use.out.end(), known);
}

class Inference {
 public:
  Inference(const std::vector<NodeEntry>& outputs, SpecMap& specs, bool train) : train_(train) {
    for (Node* node : topological_order(outputs)) {
      const NodePtr self(node);
      Use use{node, {}, {}, false};
      for (int i = 0; i < node->num_outputs(); ++i) {
        TensorSpec& spec = specs[{self, static_cast<uint32_t>(i)}];
        // Specs from a trace hold for the trace's inputs, not for every call: only a constant's spec is used here.
        if (node->constant && !node->specs.empty()) learn(spec, node->specs[0]);
        if (node->is_variable()) learn(spec, declared_spec(*node));
        use.out.push_back(&spec);
      }
      for (const NodeEntry& input : node->inputs) use.in.push_back(&specs[input]);
      uses_.push_back(std::move(use));
    }
  }

  bool run() {
    bool forwards = true;
    // In a feed-forward net one sweep each way finds all specs; every further sweep finds at least one new fact.
    for (bool learned = true, first = true; learned || first; first = false) {
      learned = false;
      for (size_t i = 0; i < uses_.size(); ++i) learned |= visit(uses_[forwards ? i : uses_.size() - 1 - i]);
      forwards = !forwards;
      if (first) learned = true;  // always sweep back once, unless all uses are complete
      if (std::all_of(uses_.begin(), uses_.end(), [](const Use& u) { return u.complete; })) return true;
    }
    return std::all_of(uses_.begin(), uses_.end(), all_known);
  }

 private:
  static void learn(TensorSpec& spec, const TensorSpec& more) {
    if (spec.dtype == DType::kUnknown) spec.dtype = more.dtype;
    if (!spec.shape.rank_known() || (!spec.shape.known() && more.shape.known())) spec.shape = more.shape;
  }

  bool visit(Use& use) {
    if (use.complete) return false;
    Node& node = *use.node;
    if (node.is_variable()) {
      use.complete = use.out[0]->known();
      return false;
    }
    in_.clear();
    out_.clear();
    for (const TensorSpec* s : use.in) in_.push_back(*s);
    for (const TensorSpec* s : use.out) out_.push_back(*s);
    in_before_ = in_;
    out_before_ = out_;
    infer(node);
    bool learned = false;
    // Only changed specs are stored: an entry that the node reads twice keeps the facts found at either input.
    auto store = [&](std::vector<TensorSpec*>& targets, const std::vector<TensorSpec>& before,
                     const std::vector<TensorSpec>& found) {
      for (size_t i = 0; i < targets.size(); ++i) {
        if (before[i] == found[i]) continue;
        *targets[i] = found[i];
        learned = true;
      }
    };
    store(use.in, in_before_, in_);
    store(use.out, out_before_, out_);
    use.complete = all_known(use);
    return learned;
  }

  void infer(const Node& node) {
    try {
      infer_node(node, in_, out_, train_);
    } catch (Error& error) {
      error.add_context({.op = node.op->name, .node = node.name, .block = node.block, .where = node.where});
      throw;
    }
  }

  bool train_;
  std::vector<Use> uses_;
  std::vector<TensorSpec> in_, out_, in_before_, out_before_;
};

}  // namespace

TensorSpec& SpecMap::operator[](const NodeEntry& e) { return specs_[e]; }

const TensorSpec& SpecMap::at(const NodeEntry& e) const {
  const auto it = specs_.find(e);
  if (it == specs_.end()) {
    throw Error(ErrorKind::kError,
                {.node = e.node ? e.node->name : "(none)", .message = "no spec is known for an output of this node"});
  }
  return it->second;
}

bool SpecMap::has(const NodeEntry& e) const { return specs_.find(e) != specs_.end(); }

bool infer_specs(const std::vector<NodeEntry>& outputs, SpecMap& specs, bool train) {
  return Inference(outputs, specs, train).run();
}

}  // namespace hybridnet
