// Replaces composed operators (Op::compose) by the operators that they stand for, also in bodies of loops and branches.
#include <algorithm>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "graph/control/loop_view.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// Emits the operator that `op` is or stands for with these inputs. The inputs may be outputs of composed operators
// again.
Values expanded(const Op& op, const ParamsPtr& params, std::span<const Value> inputs) {
  Emitter& emitter = Emitter::current();
  std::vector<DType> dtypes;
  for (const Value& input : inputs) dtypes.push_back(emitter.spec(input).dtype);
  if (const Op* same = op.same_op(params->data(), dtypes)) return emitter.emit(*same, params, inputs);
  return op.compose(params->data(), inputs);
}

// Adds the nodes that a rule emits behind the composed node, under its name.
class NodeEmitter final : public Emitter {
 public:
  NodeEmitter(Graph& graph, const Node& origin) : graph_(graph), origin_(origin) {}

  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override {
    if (op.composed()) return expanded(op, params, inputs);
    std::vector<NodeEntry> entries;
    for (const Value& input : inputs) entries.push_back(to_entry(input));
    const NodePtr node = graph_.add(op, std::move(params), std::move(entries), &origin_);
    node->attrs = origin_.attrs;
    draw_from_stream(*node);
    Values outputs;
    for (uint32_t i = 0; i < node->specs.size(); ++i) outputs.push_back(to_value(NodeEntry{node, i}));
    return outputs;
  }
  TensorSpec spec(const Value& v) const override { return graph_.spec(to_entry(v)); }
  bool draws_often() const { return random_nodes_ > 1; }

 private:
  // The first random node draws the numbers of the composed node; others get streams of their own.
  void draw_from_stream(Node& node) {
    if (!is_random(node) || ++random_nodes_ == 1) return;
    clear_random_stream(node);
  }

  Graph& graph_;
  const Node& origin_;
  int random_nodes_ = 0;
};

bool is_composed(const Node& node) { return node.op != nullptr && node.op->composed(); }

bool holds_composed(const Node& node) {
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [](const Ref<Subgraph>& body) {
    const std::vector<Node*> nodes = topological_order(body->outputs);
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* inner) { return is_composed(*inner) || holds_composed(*inner); });
  });
}

// Returns true if the new nodes need random streams that the composed node did not need.
bool expand(Graph& graph, Node& node) {
  const NodePtr self(&node);
  NodeEmitter emitter(graph, node);
  const Emitter::Scope scope(emitter);
  Values inputs;
  for (const NodeEntry& input : node.inputs) inputs.push_back(to_value(input));
  const Values results = expanded(*node.op, node.params, inputs);
  for (uint32_t i = 0; i < results.size(); ++i)
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i)))
      graph.replace({self, i}, to_entry(results[i]));
  return emitter.draws_often();
}

void expand_bodies(Graph& graph, Node& node) {
  std::vector<Ref<Subgraph>> bodies;
  for (size_t body = 0; body < node.subgraphs.size(); ++body) {
    Graph inner = graph_of_body(graph, node, body);
    const PipelineScope scope(node, body);
    bodies.push_back(expand_composed(inner) ? freeze(inner, inner.outputs()) : node.subgraphs[body]);
  }
  const NodePtr made = graph.add(*node.op, node.params, node.inputs, &node, std::move(bodies));
  made->attrs = node.attrs;
  std::vector<NodeEntry> outputs;
  for (uint32_t i = 0; i < made->specs.size(); ++i) outputs.push_back({made, i});
  move_readers(graph, node, outputs);
}

}  // namespace

bool expand_composed(Graph& graph) {
  std::vector<NodePtr> nodes;
  for (Node* node : graph.order()) {
    // Bodies with changing sizes are expanded when they are linked, for the sizes that they have then.
    if (is_composed(*node) || (holds_composed(*node) && !has_dynamic_shape(*node))) nodes.emplace_back(node);
  }
  bool new_streams = false;
  for (const NodePtr& node : nodes) {
    if (!graph.contains(node.get())) continue;
    if (is_composed(*node))
      new_streams = expand(graph, *node) || new_streams;
    else
      expand_bodies(graph, *node);
  }
  graph.remove_unused();
  if (new_streams) number_random_nodes(graph);
  return !nodes.empty();
}

}  // namespace hybridnet::passes
