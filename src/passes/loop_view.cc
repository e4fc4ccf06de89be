#include "passes/loop_view.h"

#include <algorithm>

#include "passes/body_graph.h"

namespace hybridnet {
namespace {

std::vector<TensorSpec> input_specs(const Graph& graph, const Node& node) {
  std::vector<TensorSpec> specs;
  for (const NodeEntry& input : node.inputs) specs.push_back(graph.spec(input));
  return specs;
}

}  // namespace

int64_t rows_of(const Graph& graph, const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  return p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
}

LoopView::LoopView(const Graph& graph, const Node& node)
    : params(params_of<ForeachParams>(node)),
      body(body_graph(node, 0, body_input_specs(node, 0, input_specs(graph, node)), graph.train())),
      rows_(rows_of(graph, node)) {
  const std::vector<int> sources = body_sources(node, 0);
  auto slot = [&](int at) {
    const auto input = static_cast<size_t>(at);
    return Slot{node.inputs[static_cast<size_t>(sources[input])], body.inputs()[input]};
  };
  for (int at : to_ints(params.in_data_locs)) data.push_back(slot(at));
  for (int at : to_ints(params.remain_locs)) captured.push_back(slot(at));
  for (int i = 0; i < params.num_out_data; ++i) outs.push_back({i, i});
  int output = params.num_out_data;
  for (int at : to_ints(params.in_state_locs)) {
    states.push_back({slot(at), output, output});
    ++output;
  }
  if (params.counted) count = node.inputs.back();
}

int LoopView::output_of(const NodeEntry& value) {
  const auto& outputs = body.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  return found != outputs.end() ? static_cast<int>(found - outputs.begin()) : body.add_output(value);
}

void LoopView::add_state(const NodeEntry& init, const TensorSpec& spec, const std::string& name,
                         const NodeEntry& next) {
  const NodePtr inner = body.add_input(name, spec);
  states.push_back({{init, inner}, output_of(next), -1});
}

NodePtr LoopView::put_together(Graph& graph, const Node& node) {
  std::vector<NodeEntry> outputs;
  for (const Out& out : outs) outputs.push_back(entry(out.value));
  for (const State& state : states) outputs.push_back(entry(state.next));
  Ref<Subgraph> frozen = freeze(body, outputs);
  // Inputs of the body that have lost their slot go; nothing reads them any more.
  std::vector<NodePtr> kept;
  std::vector<NodeEntry> inputs;
  auto place = [&](const Slot& slot) -> int64_t {
    inputs.push_back(slot.outer);
    kept.push_back(frozen->inputs[static_cast<size_t>(body.input_index(slot.inner.get()))]);
    return static_cast<int64_t>(kept.size()) - 1;
  };
  params.in_data_locs.clear();
  params.in_state_locs.clear();
  params.remain_locs.clear();
  for (const Slot& slot : data) params.in_data_locs.push_back(place(slot));
  for (const State& state : states) params.in_state_locs.push_back(place(state.slot));
  for (const Slot& slot : captured) params.remain_locs.push_back(place(slot));
  frozen->inputs = std::move(kept);
  if (data.empty()) params.length = rows_;
  if (count) inputs.push_back(*count);
  params.num_args = static_cast<int32_t>(inputs.size());
  params.num_out_data = static_cast<int32_t>(outs.size());
  params.num_outputs = static_cast<int32_t>(outs.size() + states.size());
  const NodePtr made = graph.add(*node.op, ParamSchema<ForeachParams>::box(ForeachParams(params)), std::move(inputs),
                                 &node, {std::move(frozen)});
  made->attrs = node.attrs;
  return made;
}

void LoopView::replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others) {
  std::vector<NodeEntry> now = others;
  now.resize(node.specs.size());
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].output >= 0) now[static_cast<size_t>(outs[i].output)] = {made, static_cast<uint32_t>(output_of_out(i))};
  for (size_t s = 0; s < states.size(); ++s)
    if (states[s].output >= 0)
      now[static_cast<size_t>(states[s].output)] = {made, static_cast<uint32_t>(output_of_state(s))};
  const NodePtr self(&node);
  for (uint32_t i = 0; i < self->specs.size(); ++i)
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i))) graph.replace({self, i}, now[i]);
}

}  // namespace hybridnet
