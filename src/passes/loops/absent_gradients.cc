#include "passes/loops/absent_gradients.h"

#include <algorithm>
#include <utility>

#include "passes/gradient/node_builders.h"

namespace hybridnet {
namespace {

const OpRef kWhere{"where"}, kBroadcastTo{"broadcast_to"}, kBroadcastToZero{"_npi_broadcast_to"}, kMaximum{"_maximum"},
    kOnes{"_ones"};

const TensorSpec kFlagSpec{Shape{1}, DType::kFloat32};

// True if the node makes zeros of zeros. (A product does not: 0 * inf is NaN.)
bool keeps_zeros(const Node& node) { return node.op->is_view || node.op->takes_part_of_input || node.op->keeps_zeros; }

}  // namespace

NodeEntry kept_where(Graph& graph, const NodeEntry& flag, const NodeEntry& value) {
  const Shape shape = graph.spec(value).shape;
  Shape ones = Shape::scalar();
  for (int i = 0; i < shape.ndim(); ++i) ones.push_back(1);
  NodeEntry condition = reshaped(graph, flag, ones, nullptr);
  if (!(graph.spec(condition).shape == shape)) {
    const OpRef& broadcast = shape.size() == 0 ? kBroadcastToZero : kBroadcastTo;  // broadcast_to keeps a size for 0
    condition = emit(graph, broadcast, {condition}, {{"shape", shape.str()}}, nullptr);
  }
  return emit(graph, kWhere, {condition, value, zeros(graph, graph.spec(value), nullptr)}, {}, nullptr);
}

bool AbsentGradients::Arrival::any() const {
  return always || std::find(states.begin(), states.end(), true) != states.end();
}

void AbsentGradients::Arrival::merge(const Arrival& other) {
  always = always || other.always;
  for (size_t s = 0; s < states.size(); ++s) states[s] = !always && (states[s] || other.states[s]);
}

AbsentGradients::AbsentGradients(Graph& body, std::vector<State> states, const std::vector<NodePtr>& heads, bool is_cut)
    : body_(body), states_(std::move(states)), heads_(heads) {
  for (const State& state : states_) always_.push_back(state.arrives && !state.arrived.node && !is_cut);
  // A state stays in `always_` if its next gradient depends on a gradient that arrives in each iteration.
  for (bool changed = true; std::exchange(changed, false);) {
    find_arrivals();
    for (size_t s = 0; s < states_.size(); ++s) {
      const Arrival* next = states_[s].next.node ? arrival_of(states_[s].next) : nullptr;
      if (!always_[s] || (next && next->always)) continue;
      always_[s] = false;
      changed = true;
    }
  }
}

void AbsentGradients::find_arrivals() {
  arrivals_.clear();
  for (const NodePtr& head : heads_) arrivals_.emplace(head.get(), nothing()).first->second.always = true;
  for (size_t s = 0; s < states_.size(); ++s) {
    if (!states_[s].head) continue;
    Arrival& arrival = arrivals_.emplace(states_[s].head.get(), nothing()).first->second;
    (always_[s] ? arrival.always = true : arrival.states[s] = true);
  }
  for (const Node* node : body_.order()) {
    Arrival all = nothing();
    for (const NodeEntry& input : node->inputs)
      if (const Arrival* arrival = arrival_of(input)) all.merge(*arrival);
    if (all.any()) arrivals_.emplace(node, std::move(all));
  }
}

const AbsentGradients::Arrival* AbsentGradients::arrival_of(const NodeEntry& entry) const {
  const auto found = arrivals_.find(entry.node.get());
  return found == arrivals_.end() ? nullptr : &found->second;
}

// True if the entry may differ from zeros when no gradient arrives.
bool AbsentGradients::may_be_wrong(const NodeEntry& entry) {
  if (entry.node->is_variable()) return false;
  if (const auto known = may_be_wrong_.find(entry.node.get()); known != may_be_wrong_.end()) return known->second;
  const auto& inputs = entry.node->inputs;
  const bool may_be = !keeps_zeros(*entry.node) ||
                      std::any_of(inputs.begin(), inputs.end(),
                                  [&](const NodeEntry& input) { return !arrival_of(input) || may_be_wrong(input); });
  may_be_wrong_.emplace(entry.node.get(), may_be);
  return may_be;
}

void AbsentGradients::mask(std::vector<NodeEntry>& results) {
  for (Node* node : body_.order()) {
    const Arrival* arrival = arrival_of({NodePtr(node), 0});
    if (!arrival || node->is_variable()) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const NodeEntry value = node->inputs[i];
      const Arrival* of_value = arrival_of(value);
      if (!of_value || of_value->always || (!arrival->always && of_value->states == arrival->states)) continue;
      if (const NodeEntry kept = masked(value); !(kept == value)) body_.set_input(*node, static_cast<int>(i), kept);
    }
  }
  for (NodeEntry& result : results) {
    const Arrival* arrival = arrival_of(result);
    if (arrival && !arrival->always) result = masked(result);
  }
}

NodeEntry AbsentGradients::masked(const NodeEntry& value) {
  if (!is_floating(body_.spec(value).dtype) || !may_be_wrong(value)) return value;
  if (const auto known = masked_.find(value); known != masked_.end()) return known->second;
  const Arrival& arrival = *arrival_of(value);
  add_flags(arrival);
  const NodeEntry kept = kept_where(body_, flag_of(arrival), value);
  arrivals_.emplace(kept.node.get(), arrival);
  masked_.emplace(value, kept);
  may_be_wrong_.emplace(kept.node.get(), false);
  return kept;
}

// Adds a flag for these states, and for all states on which these flags depend in the next iteration.
void AbsentGradients::add_flags(const Arrival& arrival) {
  for (size_t s = 0; s < states_.size(); ++s) {
    if (!arrival.states[s] || states_[s].flag) continue;
    states_[s].flag = NodeEntry{body_.add_input("arrives", kFlagSpec), 0};
    const Arrival* next = states_[s].next.node ? arrival_of(states_[s].next) : nullptr;
    if (next && !next->always) add_flags(*next);
  }
}

NodeEntry AbsentGradients::flag_of(const Arrival& arrival) {
  NodeEntry flag;
  for (size_t s = 0; s < states_.size(); ++s) {
    if (!arrival.states[s]) continue;
    flag = flag.node ? emit(body_, kMaximum, {flag, *states_[s].flag}, {}, nullptr) : *states_[s].flag;
  }
  return flag;
}

NodeEntry AbsentGradients::next_flag(size_t state) {
  const Arrival* next = states_[state].next.node ? arrival_of(states_[state].next) : nullptr;
  if (next == nullptr) return zeros(body_, kFlagSpec, nullptr);
  return next->always ? emit(body_, kOnes, {}, {{"shape", "(1,)"}}, nullptr) : flag_of(*next);
}

}  // namespace hybridnet
