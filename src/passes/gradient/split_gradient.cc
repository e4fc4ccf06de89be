#include <unordered_set>

#include "graph/control/control_flow.h"
#include "passes/gradient/gradient.h"

namespace hybridnet {
namespace {

class Splitter {
 public:
  Splitter(const Graph& joint, int num_inputs, int num_outputs, bool recompute)
      : joint_(joint), num_inputs_(num_inputs), num_outputs_(num_outputs), recompute_(recompute) {
    result_.forward = Graph(joint.train());
    result_.backward = Graph(joint.train());
  }

  SplitGraph run() {
    collect_forward();
    build_backward();
    build_forward();
    result_.num_residuals = static_cast<int>(residuals_.size());
    return std::move(result_);
  }

 private:
  void collect_forward() {
    std::vector<const Node*> pending;
    auto visit = [&](const NodeEntry& entry) {
      if (forward_.insert(entry.node.get()).second) pending.push_back(entry.node.get());
    };
    for (int i = 0; i < num_outputs_; ++i) visit(joint_.outputs()[static_cast<size_t>(i)]);
    for (const Graph::Writeback& writeback : joint_.writebacks()) visit(writeback.value);
    // Random draws happen once, in the forward run, wherever they are read.
    for (Node* node : joint_.order()) {
      if (is_random(*node) && !repeats_draws(*node)) visit({NodePtr(node), 0});
    }
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      for (const NodeEntry& input : node->inputs) visit(input);
    }
  }

  // True for values that cost nothing to compute again; they are not kept.
  static bool is_free(const Node& node) {
    return node.op && !node.op->random && !node.op->opaque &&
           ((node.op->is_view && node.specs.size() == 1) || node.inputs.empty() ||
            node.attrs.count(kCheapAttribute) != 0);
  }

  void build_backward() {
    const auto& outputs = joint_.outputs();
    std::vector<NodeEntry> gradients(outputs.begin() + num_outputs_, outputs.end());
    std::unordered_set<const Node*> seen;
    std::vector<NodeEntry> pending = gradients;
    while (!pending.empty()) {
      const NodeEntry entry = std::move(pending.back());
      pending.pop_back();
      if (map_.count(entry) != 0) continue;
      const Node& node = *entry.node;
      if (needs_source(entry)) {
        add_source(entry);
      } else if (seen.insert(&node).second) {
        for (const NodeEntry& input : node.inputs) pending.push_back(input);
      }
    }
    for (const NodeEntry& clone : result_.backward.import(joint_, gradients, map_)) result_.backward.add_output(clone);
  }

  bool needs_source(const NodeEntry& entry) const {
    const Node& node = *entry.node;
    if (joint_.input_index(&node) >= 0) return true;
    if (node.is_variable()) return false;  // a constant is cloned
    return forward_.count(&node) != 0 && (recompute_ ? node.attrs.count(kKeepAttribute) != 0 : !is_free(node));
  }

  void add_source(const NodeEntry& entry) {
    BackwardInput source = find_source(entry);
    const NodePtr variable = result_.backward.add_input(entry.node->name, joint_.spec(entry), joint_.format(entry));
    map_[entry] = {variable, 0};
    result_.sources.push_back(source);
  }

  BackwardInput find_source(const NodeEntry& entry) {
    if (const int input = joint_.input_index(entry.node.get()); input >= 0) {
      if (input < num_inputs_) return {BackwardInput::Kind::kForwardInput, input};
      return {BackwardInput::Kind::kHead, input - num_inputs_};
    }
    for (const Client& reader : joint_.clients(entry)) {
      if (reader.kind == Client::Kind::kOutput && reader.index < num_outputs_)
        return {BackwardInput::Kind::kForwardOutput, reader.index};
    }
    residuals_.push_back(entry);
    return {BackwardInput::Kind::kResidual, static_cast<int>(residuals_.size()) - 1};
  }

  void build_forward() {
    EntryMap map;
    for (int i = 0; i < num_inputs_; ++i) {
      const NodePtr& input = joint_.inputs()[static_cast<size_t>(i)];
      const NodePtr variable = result_.forward.add_input(input->name, input->specs[0], joint_.format({input, 0}));
      map[{input, 0}] = {variable, 0};
    }
    std::vector<NodeEntry> wanted(joint_.outputs().begin(), joint_.outputs().begin() + num_outputs_);
    wanted.insert(wanted.end(), residuals_.begin(), residuals_.end());
    const size_t num_kept = wanted.size();
    for (const Graph::Writeback& writeback : joint_.writebacks()) wanted.push_back(writeback.value);
    const std::vector<NodeEntry> clones = result_.forward.import(joint_, wanted, map);
    for (size_t i = 0; i < num_kept; ++i) result_.forward.add_output(clones[i]);
    for (size_t i = num_kept; i < clones.size(); ++i) {
      result_.forward.add_writeback(joint_.writebacks()[i - num_kept].input, clones[i]);
    }
  }

  const Graph& joint_;
  const int num_inputs_, num_outputs_;
  const bool recompute_;
  std::unordered_set<const Node*> forward_;
  std::vector<NodeEntry> residuals_;
  EntryMap map_;  // joint -> backward
  SplitGraph result_;
};

}  // namespace

SplitGraph split_gradient(const Graph& joint, int num_inputs, int num_outputs, bool recompute) {
  return Splitter(joint, num_inputs, num_outputs, recompute).run();
}

}  // namespace hybridnet
