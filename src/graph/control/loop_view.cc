#include "graph/control/loop_view.h"

#include <algorithm>

#include "graph/control/body_graph.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kForeach{"_foreach"}, kWhileLoop{"_while_loop"};

// A frozen body with only the kept slots, in the order of keep() calls. Nothing reads the other inputs.
class FrozenBody {
 public:
  FrozenBody(const Graph& graph, const std::vector<NodeEntry>& outputs)
      : graph_(graph), whole_(freeze(graph, outputs)) {}
  void keep(const NodePtr& input, const NodeEntry& outer) {
    kept_.push_back(input ? whole_->inputs[static_cast<size_t>(graph_.input_index(input.get()))]
                          : body_variable(outer));
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

bool is_read(const Graph& graph, const NodePtr& input) { return input && !graph.clients({input, 0}).empty(); }

}  // namespace

int64_t rows_of(const Graph& graph, const Node& node) {
  const LoopSpec& loop = loop_of(node);
  return rows_of(loop, loop.num_seq > 0 ? graph.spec(node.inputs[0]) : TensorSpec{});
}

Graph graph_of_body(const Graph& graph, const Node& node, size_t body) {
  std::vector<TensorSpec> specs;
  for (const NodeEntry& input : node.inputs) specs.push_back(graph.spec(input));
  return body_graph(node, body, body_input_specs(node, body, specs), graph.train());
}

void move_readers(Graph& graph, Node& node, const std::vector<NodeEntry>& now) {
  const NodePtr self(&node);
  for (uint32_t i = 0; i < now.size(); ++i)
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i))) graph.replace({self, i}, now[i]);
}

void for_each_node(Graph& graph, std::initializer_list<ControlKind> kinds, const std::function<void(Node&)>& rewrite,
                   Walk walk) {
  std::vector<NodePtr> nodes;
  for (Node* node : graph.order())
    if (std::find(kinds.begin(), kinds.end(), control_kind(*node)) != kinds.end()) nodes.emplace_back(node);
  if (walk == Walk::kReadersFirst) std::reverse(nodes.begin(), nodes.end());
  for (const NodePtr& node : nodes)
    if (graph.contains(node.get())) rewrite(*node);
}

bool LoopView::can_view(const Node& node) {
  const ControlKind kind = control_kind(node);
  return kind == ControlKind::kForeach || (kind == ControlKind::kWhileLoop && !has_dynamic_shape(node));
}

LoopView::LoopView(const Graph& graph, const Node& node)
    : spec(loop_of(node)), body(graph_of_body(graph, node, node.subgraphs.size() - 1)) {
  if (control_kind(node) == ControlKind::kForeach)
    rows_ = rows_of(graph, node);
  else
    condition = graph_of_body(graph, node, 0);
  for (size_t k = 0; k < spec.slots(); ++k) {
    const Slot slot{node.inputs[k], body.inputs()[k],
                    condition && is_read(*condition, condition->inputs()[k]) ? condition->inputs()[k] : nullptr};
    if (k < spec.seqs())
      data.push_back(slot);
    else if (const int output = static_cast<int>(spec.outs() + carries.size()); k < spec.first_invariant())
      carries.push_back({slot, output, output});
    else if (slot.tested || is_read(body, slot.inner))
      captured.push_back({slot.outer, is_read(body, slot.inner) ? slot.inner : nullptr, slot.tested});
  }
  for (int i = 0; i < spec.num_out; ++i) outs.push_back({i, i});
  if (spec.counted) count = node.inputs.back();
}

int LoopView::output_of(const NodeEntry& value) {
  const auto& outputs = body.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  return found != outputs.end() ? static_cast<int>(found - outputs.begin()) : body.add_output(value);
}

void LoopView::add_carry(const NodeEntry& init, const TensorSpec& spec, const std::string& name,
                         const NodeEntry& next) {
  const NodePtr inner = body.add_input(name, spec);
  carries.push_back({{init, inner, nullptr}, output_of(next), -1});
}

const LoopView::Slot& LoopView::add_sequence(const NodeEntry& outer, const TensorSpec& slice, const std::string& name) {
  return data.emplace_back(Slot{outer, body.add_input(name, slice), nullptr});
}

const LoopView::Slot& LoopView::add_invariant(const NodeEntry& outer) {
  return captured.emplace_back(Slot{outer, body.add_input(outer.node->name, outer.node->specs[outer.index]), nullptr});
}

const LoopView::Slot* LoopView::find(const std::vector<Slot>& slots, const NodeEntry& entry) {
  const auto found =
      std::find_if(slots.begin(), slots.end(), [&](const Slot& slot) { return slot.inner == entry.node; });
  return found == slots.end() ? nullptr : &*found;
}

NodePtr LoopView::put_together(Graph& graph, const Node& origin) const {
  std::vector<NodeEntry> outputs;
  for (const Out& out : outs) outputs.push_back(entry(out.value));
  for (const Carry& carry : carries) outputs.push_back(entry(carry.next));
  FrozenBody frozen(body, outputs);
  std::optional<FrozenBody> test;
  if (condition) test.emplace(*condition, condition->outputs());
  std::vector<NodeEntry> inputs;
  auto place = [&](const Slot& slot) {
    inputs.push_back(slot.outer);
    frozen.keep(slot.inner, slot.outer);
    if (test) test->keep(slot.tested, slot.outer);
  };
  LoopSpec p = spec;
  const std::vector<Node*> reached = topological_order(outputs);
  auto is_needed = [&](const Slot& slot) {
    return slot.tested || std::find(reached.begin(), reached.end(), slot.inner.get()) != reached.end();
  };
  for (const Slot& slot : data)
    if (is_needed(slot)) place(slot);
  p.num_seq = static_cast<int32_t>(inputs.size());
  for (const Carry& carry : carries) place(carry.slot);
  p.num_carry = static_cast<int32_t>(carries.size());
  for (const Slot& slot : captured)
    if (is_needed(slot)) place(slot);
  if (count) inputs.push_back(*count);
  p.counted = count.has_value();
  p.num_args = static_cast<int32_t>(inputs.size());
  p.num_out = static_cast<int32_t>(outs.size());
  if (!condition) p.length = p.num_seq > 0 ? std::optional<int64_t>() : rows_;
  std::vector<Ref<Subgraph>> bodies;
  if (test) bodies.push_back(test->subgraph());
  bodies.push_back(frozen.subgraph());
  const Op& op = condition ? kWhileLoop.op() : kForeach.op();
  const NodePtr made = graph.add(op, boxed(std::move(p)), std::move(inputs), &origin, std::move(bodies));
  made->attrs = origin.attrs;
  return made;
}

void LoopView::replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others) const {
  std::vector<NodeEntry> now = others;
  now.resize(node.specs.size());
  for (size_t i = 0; i < outs.size(); ++i)
    if (outs[i].output >= 0) now[static_cast<size_t>(outs[i].output)] = out(made, i);
  for (size_t s = 0; s < carries.size(); ++s)
    if (carries[s].output >= 0) now[static_cast<size_t>(carries[s].output)] = final_carry(made, s);
  if (has_condition()) now.back() = final_carry(made, carries.size());  // number of iterations
  move_readers(graph, node, now);
}

// ---------------------------------------------------------------------------------------------------- branches
BoundBody bound_body(const Node& node, size_t body) { return {node.subgraphs[body], node.inputs}; }

BoundBody predicate_of(const NodeEntry& value, const TensorSpec& spec) {
  const NodePtr variable = make_variable("pred");
  const NodePtr copy = make_node(kCopy.op(), "pred_copy", kCopy.op().default_params, {{variable, 0}});
  if (spec.known()) variable->specs = copy->specs = {spec};
  auto body = make_ref<Subgraph>();
  body->inputs = {variable};
  body->outputs = {{copy, 0}};
  return {std::move(body), {value}};
}

NodePtr add_cond(Graph& graph, const Node& like, BranchSpec spec, std::array<BoundBody, 3> bodies) {
  std::vector<NodeEntry> inputs;
  bind_bodies(inputs, bodies);
  spec.num_args = static_cast<int32_t>(inputs.size());
  const NodePtr made =
      graph.add(*like.op, boxed(spec), std::move(inputs), &like, {bodies[0].body, bodies[1].body, bodies[2].body});
  made->attrs = like.attrs;
  return made;
}

}  // namespace hybridnet
