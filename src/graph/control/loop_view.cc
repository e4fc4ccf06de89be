#include "graph/control/loop_view.h"

#include <algorithm>

#include "graph/control/body_graph.h"

namespace hybridnet {
namespace {

std::vector<TensorSpec> input_specs(const Graph& graph, const Node& node) {
  std::vector<TensorSpec> specs;
  for (const NodeEntry& input : node.inputs) specs.push_back(graph.spec(input));
  return specs;
}

Graph body_of(const Graph& graph, const Node& node, size_t body) {
  return body_graph(node, body, body_input_specs(node, body, input_specs(graph, node)), graph.train());
}

bool all_different(const OptionalInts& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (std::find(numbers.begin(), numbers.begin() + static_cast<long>(i), numbers[i]) !=
        numbers.begin() + static_cast<long>(i))
      return false;
  return true;
}

// A body whose inputs are those that have kept a slot, in the order of the slots; nothing reads the others any more.
class FrozenBody {
 public:
  FrozenBody(const Graph& graph, const std::vector<NodeEntry>& outputs)
      : graph_(graph), whole_(freeze(graph, outputs)) {}
  int64_t keep(const NodePtr& input) {
    kept_.push_back(whole_->inputs[static_cast<size_t>(graph_.input_index(input.get()))]);
    return static_cast<int64_t>(kept_.size()) - 1;
  }
  Ref<Subgraph> subgraph() {
    whole_->inputs = std::move(kept_);
    return std::move(whole_);
  }

 private:
  const Graph& graph_;
  Ref<Subgraph> whole_;
  std::vector<NodePtr> kept_;
};

}  // namespace

int64_t rows_of(const Graph& graph, const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  return p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
}

bool LoopView::can_view(const Node& node) {
  if (control_kind(node) == ControlKind::kForeach) return true;
  if (control_kind(node) != ControlKind::kWhileLoop || has_dynamic_shape(node)) return false;
  const auto& p = params_of<WhileLoopParams>(node);
  const std::optional<int64_t> limit = static_cast<int64_t>(node.inputs.size()) - 1;
  auto is_read = [&](const OptionalInts& locs) { return std::find(locs.begin(), locs.end(), limit) != locs.end(); };
  if (p.limited && (is_read(p.func_input_locs) || is_read(p.cond_input_locs))) return false;
  return all_different(p.func_input_locs) && all_different(p.cond_input_locs) && all_different(p.func_var_locs);
}

LoopView::LoopView(const Graph& graph, const Node& node)
    : body(body_of(graph, node, node.subgraphs.size() - 1)), params_(node.params) {
  if (control_kind(node) == ControlKind::kForeach) {
    rows_ = rows_of(graph, node);
    take_foreach(node);
  } else {
    condition = body_of(graph, node, 0);
    take_while(node);
  }
}

void LoopView::take_foreach(const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  const std::vector<int> sources = body_sources(node, 0);
  auto slot = [&](int at) {
    const auto input = static_cast<size_t>(at);
    return Slot{node.inputs[static_cast<size_t>(sources[input])], body.inputs()[input], nullptr};
  };
  for (int at : to_ints(p.in_data_locs)) data.push_back(slot(at));
  for (int at : to_ints(p.remain_locs)) captured.push_back(slot(at));
  for (int i = 0; i < p.num_out_data; ++i) outs.push_back({i, i});
  int output = p.num_out_data;
  for (int at : to_ints(p.in_state_locs)) {
    states.push_back({slot(at), output, output});
    ++output;
  }
  if (p.counted) count = node.inputs.back();
}

void LoopView::take_while(const Node& node) {
  const auto& p = params_of<WhileLoopParams>(node);
  const std::vector<int> sources = body_sources(node, 1), tested = body_sources(node, 0);
  const std::vector<int> variables = to_ints(p.func_var_locs);
  std::vector<Slot> slots;  // per input of the node
  for (const NodeEntry& input : node.inputs) slots.push_back({input, nullptr, nullptr});
  for (size_t k = 0; k < sources.size(); ++k) slots[static_cast<size_t>(sources[k])].inner = body.inputs()[k];
  for (size_t k = 0; k < tested.size(); ++k) slots[static_cast<size_t>(tested[k])].tested = condition->inputs()[k];
  for (int i = 0; i < p.num_out_data; ++i) outs.push_back({i, i});
  int output = p.num_out_data;
  for (int variable : variables) {
    states.push_back({slots[static_cast<size_t>(sources[static_cast<size_t>(variable)])], output, output});
    ++output;
  }
  if (p.limited) {
    count = node.inputs.back();
    slots.pop_back();
  }
  for (const Slot& slot : slots) {
    const bool is_state = std::any_of(states.begin(), states.end(),
                                      [&](const State& s) { return slot.inner && s.slot.inner == slot.inner; });
    if (!is_state && (slot.inner || slot.tested)) captured.push_back(slot);
  }
}

int LoopView::output_of(const NodeEntry& value) {
  const auto& outputs = body.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  return found != outputs.end() ? static_cast<int>(found - outputs.begin()) : body.add_output(value);
}

void LoopView::add_state(const NodeEntry& init, const TensorSpec& spec, const std::string& name,
                         const NodeEntry& next) {
  const NodePtr inner = body.add_input(name, spec);
  states.push_back({{init, inner, nullptr}, output_of(next), -1});
}

NodePtr LoopView::put_together(Graph& graph, const Node& node) {
  const NodePtr made = has_condition() ? put_while(graph, node) : put_foreach(graph, node);
  made->attrs = node.attrs;
  return made;
}

std::vector<NodeEntry> LoopView::body_outputs() const {
  std::vector<NodeEntry> outputs;
  for (const Out& out : outs) outputs.push_back(entry(out.value));
  for (const State& state : states) outputs.push_back(entry(state.next));
  return outputs;
}

NodePtr LoopView::put_foreach(Graph& graph, const Node& node) {
  ForeachParams p = params_->as<ForeachParams>();
  FrozenBody frozen(body, body_outputs());
  std::vector<NodeEntry> inputs;
  auto place = [&](const Slot& slot) -> int64_t {
    inputs.push_back(slot.outer);
    return frozen.keep(slot.inner);
  };
  p.in_data_locs.clear();
  p.in_state_locs.clear();
  p.remain_locs.clear();
  for (const Slot& slot : data) p.in_data_locs.push_back(place(slot));
  for (const State& state : states) p.in_state_locs.push_back(place(state.slot));
  for (const Slot& slot : captured) p.remain_locs.push_back(place(slot));
  if (data.empty()) p.length = rows_;
  if (count) inputs.push_back(*count);
  p.num_args = static_cast<int32_t>(inputs.size());
  p.num_out_data = static_cast<int32_t>(outs.size());
  p.num_outputs = static_cast<int32_t>(outs.size() + states.size());
  return graph.add(*node.op, ParamSchema<ForeachParams>::box(std::move(p)), std::move(inputs), &node,
                   {frozen.subgraph()});
}

NodePtr LoopView::put_while(Graph& graph, const Node& node) {
  WhileLoopParams p = params_->as<WhileLoopParams>();
  FrozenBody frozen(body, body_outputs()), test(*condition, condition->outputs());
  std::vector<NodeEntry> inputs;
  p.func_input_locs.clear();
  p.func_var_locs.clear();
  p.cond_input_locs.clear();
  auto place = [&](const Slot& slot) {
    const auto number = static_cast<int64_t>(inputs.size());
    inputs.push_back(slot.outer);
    if (slot.tested) {
      test.keep(slot.tested);
      p.cond_input_locs.push_back(number);
    }
    if (!slot.inner) return;
    frozen.keep(slot.inner);
    p.func_input_locs.push_back(number);
  };
  for (const State& state : states) {
    p.func_var_locs.push_back(static_cast<int64_t>(p.func_input_locs.size()));
    place(state.slot);
  }
  for (const Slot& slot : captured) place(slot);
  if (count) inputs.push_back(*count);
  p.num_args = static_cast<int32_t>(inputs.size());
  p.num_out_data = static_cast<int32_t>(outs.size());
  p.num_outputs = static_cast<int32_t>(outs.size() + states.size());
  return graph.add(*node.op, ParamSchema<WhileLoopParams>::box(std::move(p)), std::move(inputs), &node,
                   {test.subgraph(), frozen.subgraph()});
}

void LoopView::replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others) {
  std::vector<NodeEntry> now = others;
  now.resize(node.specs.size());
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].output >= 0) now[static_cast<size_t>(outs[i].output)] = {made, static_cast<uint32_t>(output_of_out(i))};
  for (size_t s = 0; s < states.size(); ++s)
    if (states[s].output >= 0)
      now[static_cast<size_t>(states[s].output)] = {made, static_cast<uint32_t>(output_of_state(s))};
  if (has_condition()) now.back() = {made, static_cast<uint32_t>(made->specs.size()) - 1};  // number of iterations
  const NodePtr self(&node);
  for (uint32_t i = 0; i < self->specs.size(); ++i)
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i))) graph.replace({self, i}, now[i]);
}

}  // namespace hybridnet
