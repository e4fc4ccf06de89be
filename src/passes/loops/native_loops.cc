// Marks loops over a handful of numbers with elementwise bodies: linking may compile them to machine code
// (plan/control/native_loop.h).
#include <algorithm>

#include "graph/control/control_flow.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

constexpr int64_t kMaxSize = 32;  // elements of a slot
constexpr size_t kMaxNodes = 64;  // nodes of a body

bool is_small(const TensorSpec& spec) { return spec.shape.size() >= 1 && spec.shape.size() <= kMaxSize; }

bool is_elementwise(const Node& node) {
  if (node.is_variable()) return true;
  const Op& op = *node.op;
  return (op.pointwise || op.is_view || op.fills_with) && !op.random && !op.opaque && op.total && node.control.empty();
}

bool is_elementwise(const Subgraph& body) {
  const std::vector<Node*> nodes = topological_order(body.outputs);
  return nodes.size() <= kMaxNodes &&
         std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return is_elementwise(*node); });
}

bool may_become_native(const Graph& graph, const Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (loop.num_carry == 0 || !loop.free_axes.empty()) return false;
  for (size_t slot = 0; slot < loop.slots(); ++slot) {
    const TensorSpec& spec = graph.spec(node.inputs[slot]);
    if (!is_small(slot < loop.seqs() ? slice_spec(spec, loop.scalar_slices) : spec)) return false;
  }
  return std::all_of(node.subgraphs.begin(), node.subgraphs.end(),
                     [](const Ref<Subgraph>& body) { return is_elementwise(*body); });
}

}  // namespace

bool native_loops(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.order()) {
    const ControlKind kind = control_kind(*node);
    if (kind != ControlKind::kForeach && kind != ControlKind::kWhileLoop) continue;
    if (node->attrs.count(kNativeAttribute) != 0 || !may_become_native(graph, *node)) continue;
    node->attrs[kNativeAttribute] = "1";
    changed = true;
  }
  return changed;
}

}  // namespace hybridnet::passes
