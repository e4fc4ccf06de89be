#include "passes/gradient/remat_values.h"

#include <algorithm>

#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/gradient/gradient.h"
#include "passes/preparation.h"

namespace hybridnet::passes {
namespace {

bool is_shown(const Node& node) { return !node.is_variable() && node.op->is_view && node.specs.size() == 1; }

// True for nodes that take one or two sweeps over memory.
bool passes_over_input(const Node& node) {
  const Op& op = *node.op;
  return op.pointwise != nullptr || op.format_agnostic || op.is_view || op.takes_part_of_input || op.light ||
         repeats_first_output_only(node);
}

// The nodes that must have run before the backward run may begin: for a graph that is cut, all nodes that
// split_gradient() puts into the forward plan.
NodeSet forward_of_cut(const Graph& graph) {
  NodeSet of_heads, forward;
  for (Node* node : graph.order()) {
    const bool is_head = graph.input_index(node) >= 0 && node->attrs.count(kHeadAttribute) != 0;
    const auto is_of_head = [&](const NodeEntry& input) { return of_heads.count(input.node.get()) != 0; };
    if (is_head || std::any_of(node->inputs.begin(), node->inputs.end(), is_of_head)) of_heads.insert(node);
  }
  std::vector<const Node*> pending;
  const auto visit = [&](const Node* node) {
    if (forward.insert(node).second) pending.push_back(node);
  };
  for (const NodeEntry& output : graph.outputs())
    if (of_heads.count(output.node.get()) == 0) visit(output.node.get());
  for (const Graph::Writeback& writeback : graph.writebacks()) visit(writeback.value.node.get());
  for (const Node* node : graph.order())
    if (is_random(*node) && !repeats_draws(*node)) visit(node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const NodeEntry& input : node->inputs) visit(input.node.get());
  }
  return forward;
}

}  // namespace

bool repeats_first_output_only(const Node& node) { return !node.is_variable() && node.op->repeated.has_value(); }

Repetition repetition_of(const Node& node) {
  if (!repeats_first_output_only(node)) return {node.op, node.params, node.inputs};
  const RepeatedForm& form = *node.op->repeated;
  const Op& op = op_registry().at(form.op);
  const NodePtr self(const_cast<Node*>(&node));
  std::vector<NodeEntry> inputs;
  for (const RepeatedForm::Source& source : form.inputs)
    inputs.push_back(source.output < 0 ? node.inputs[static_cast<size_t>(source.input)]
                                       : NodeEntry{self, static_cast<uint32_t>(source.output)});
  return {&op, make_params(op, &node, form.attrs), std::move(inputs)};
}

Peak find_peak(const Graph& graph) {
  const std::vector<Node*> schedule = graph.schedule();
  std::unordered_map<const Node*, size_t> place;
  for (size_t i = 0; i < schedule.size(); ++i) place[schedule[i]] = i;
  std::unordered_map<NodeEntry, size_t, NodeEntryHash> last;
  const auto shown = [](NodeEntry entry) {
    while (is_shown(*entry.node)) entry = entry.node->inputs[0];
    return entry;
  };
  for (size_t i = 0; i < schedule.size(); ++i)
    for (const NodeEntry& input : schedule[i]->inputs) last[shown(input)] = i;
  for (const NodeEntry& output : graph.outputs()) last[shown(output)] = schedule.size();
  std::vector<int64_t> gone(schedule.size() + 1);
  int64_t alive = 0;
  Peak peak;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Node& node = *schedule[i];
    if (!node.is_variable() && !is_shown(node)) {
      for (uint32_t k = 0; k < node.specs.size(); ++k) {
        const auto found = last.find({NodePtr(const_cast<Node*>(&node)), k});
        if (found == last.end()) continue;
        alive += node.specs[k].bytes();
        gone[found->second] += node.specs[k].bytes();
      }
    }
    if (alive > peak.bytes) peak = {alive, i};
    alive -= gone[i];
  }
  return peak;
}

KeptValues::KeptValues(const Graph& graph, const RematScope::Settings& settings)
    : graph_(graph), settings_(settings), schedule_(graph.schedule()) {
  find_late();
  for (const Node* node : schedule_) {
    if (!node->is_variable()) total_cost_ += cost_of(*node);
    if (!is_late(*node)) continue;
    for (const NodeEntry& input : node->inputs) {
      const NodeEntry value = shown_by(input);
      if (is_late(*value.node) || !read_late_.insert(value).second) continue;
      if (!value.node->is_variable()) kept_.push_back(value);
    }
    if (!settings_.body || !node->op->heavy) continue;
    for (NodeEntry operand : node->inputs) {
      while (is_shown(*operand.node)) operand = operand.node->inputs[0];
      fixed_.insert(operand);
    }
  }
  find_living();
}

// Finds the outputs, which are kept anyway.
void KeptValues::find_living() {
  const std::vector<NodeEntry>& outputs = graph_.outputs();
  const size_t count = settings_.body ? settings_.body->outs : outputs.size();
  for (size_t i = 0; i < count; ++i)
    if (!is_late(*outputs[i].node)) living_.insert(shown_by(outputs[i]));
}

void KeptValues::find_late() {
  if (settings_.is_cut) {
    const NodeSet forward = forward_of_cut(graph_);
    for (const Node* node : schedule_)
      if (!node->is_variable() && forward.count(node) == 0) late_.insert(node);
    return;
  }
  const Peak peak = find_peak(graph_);
  for (size_t i = peak.at + 1; i < schedule_.size(); ++i)
    if (!schedule_[i]->is_variable()) late_.insert(schedule_[i]);
}

NodeEntry KeptValues::shown_by(NodeEntry entry) const {
  while (is_shown(*entry.node) && !is_late(*entry.node)) entry = entry.node->inputs[0];
  return entry;
}

int64_t KeptValues::bytes_of(const NodeEntry& entry) const {
  const bool is_free =
      entry.node->is_variable() || living_.count(entry) != 0 || entry.node->attrs.count(kCheapAttribute) != 0;
  return is_free ? 0 : graph_.spec(entry).bytes();
}

int64_t KeptValues::cost_of(const Node& node) const {
  std::vector<TensorSpec> in;
  for (const NodeEntry& input : node.inputs) in.push_back(graph_.spec(input));
  return is_shown(node) ? 0 : node.op->cost_ns(node.params->data(), in, node.specs);
}

int64_t KeptValues::cost_of_repeating(const Node& node) const {
  if (!repeats_first_output_only(node)) return cost_of(node);
  const Repetition again = repetition_of(node);
  std::vector<TensorSpec> in;
  for (const NodeEntry& input : again.inputs) in.push_back(graph_.spec(input));
  return again.op->cost_ns(again.params->data(), in, std::span(node.specs).first(1));
}

bool KeptValues::is_readable(const Node& variable) const {
  const int input = graph_.input_index(&variable);
  if (input < 0 || is_read_late({NodePtr(const_cast<Node*>(&variable)), 0})) return true;
  return settings_.readable.empty() || settings_.readable[static_cast<size_t>(input)];
}

bool KeptValues::is_repeatable(const Node& node, bool any) const {
  if (node.is_variable() || is_late(node) || !node.subgraphs.empty() || !node.control.empty() || is_opaque(node) ||
      is_preparation(node) || node.op->data_dependent_shape || !(any || passes_over_input(node)))
    return false;
  return !is_random(node) || random_stream(node).has_value() || repeats_first_output_only(node);
}

}  // namespace hybridnet::passes
