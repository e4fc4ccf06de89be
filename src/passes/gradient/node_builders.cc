#include "passes/gradient/node_builders.h"

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "hybridnet/ndarray.h"
#include "passes/attributes.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kZeros{"_zeros"}, kReshape{"Reshape"};

}  // namespace

NodeEntry emit(Graph& graph, const OpRef& op, std::vector<NodeEntry> inputs, const TextAttrs& attrs,
               const Node* origin) {
  ParamsPtr params = attrs.empty() ? op.op().default_params : op.op().schema->parse(attrs, op.op().name, false);
  return {graph.add(op.op(), std::move(params), std::move(inputs), origin), 0};
}

NodeEntry zeros(Graph& graph, const TensorSpec& spec, const Node* origin) {
  if (spec.shape.size() == 0) return {graph.add_constant(Ref<Object>(NDArray::empty(spec).impl()), spec), 0};
  return emit(graph, kZeros, {}, {{"shape", spec.shape.str()}, {"dtype", dtype_name(spec.dtype)}}, origin);
}

NodeEntry reshaped(Graph& graph, const NodeEntry& entry, const Shape& shape, const Node* origin) {
  if (graph.spec(entry).shape == shape) return entry;
  // A zero in Reshape's parameter is a code; an empty value can be made anew instead.
  if (shape.size() == 0) return zeros(graph, {shape, graph.spec(entry).dtype}, origin);
  // The first size, the number of iterations of a loop or a multiple, follows from the number of elements: so the node
  // serves loops of any length.
  Shape target = shape;
  if (shape.ndim() > 0) target[0] = -1;
  return {graph.add(kReshape.op(), passes::make_params(kReshape.op(), nullptr, {{"shape", AttrValue(target)}}), {entry},
                    origin),
          0};
}

NodeEntry sum(Graph& graph, const NodeEntry& a, const NodeEntry& b, const Node* origin) {
  if (!a.node) return b;
  return b.node ? emit(graph, kAdd, {a, b}, {}, origin) : a;
}

NodeEntry behind_views(NodeEntry entry) {
  while (!entry.node->is_variable() && entry.node->op->is_view && entry.node->specs.size() == 1)
    entry = NodeEntry(entry.node->inputs[0]);
  return entry;
}

Graph prepared_body(const Graph& graph, const Node& node, size_t body) {
  Graph result = graph_of_body(graph, node, body);
  const PipelineScope scope(node, body);
  run_pipeline(result, kForwardStages);
  return result;
}

NodePtr replace_node(Graph& graph, Node& node, ParamsPtr params, std::vector<NodeEntry> inputs,
                     std::vector<Ref<Subgraph>> bodies, const std::vector<uint32_t>& new_index, EntryMap& replaced) {
  const NodePtr self(&node);
  const NodePtr made = graph.add(*node.op, std::move(params), std::move(inputs), &node, std::move(bodies));
  made->attrs = node.attrs;
  for (uint32_t i = 0; i < new_index.size(); ++i) {
    replaced[{self, i}] = {made, new_index[i]};
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i)))
      graph.replace({self, i}, {made, new_index[i]});
  }
  return made;
}

}  // namespace hybridnet
