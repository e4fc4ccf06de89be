// Each reader of a node that changes nothing reads that node's input instead.
#include "passes/borders.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

Replacement drop_identity(Graph& graph, Node& node, bool after_autodiff) {
  if (node.op->stops_gradient && !after_autodiff) return no_change();
  if (!node.op->is_identity(node.params->data(), graph.train())) return no_change();
  if (separates_borders(graph, node, node.inputs[0]) || !(node.specs[0] == graph.spec(node.inputs[0])))
    return no_change();
  for (int i = 1; i < static_cast<int>(node.specs.size()); ++i) {
    if (graph.is_used(node, i)) return no_change();
  }
  Replacement result = replace_with(node.inputs[0]);
  result.outputs.resize(node.specs.size());
  return result;
}

// Views, casts, transposes and slices that give back their input's spec without moving an element.
Replacement drop_trivial_view(Graph& graph, Node& node) {
  if (node.specs.size() != 1 || !(node.specs[0] == graph.spec(node.inputs[0]))) return no_change();
  if (separates_borders(graph, node, node.inputs[0])) return no_change();
  return replace_with(node.inputs[0]);
}

}  // namespace

void register_drop_identity(RewriteDatabase& db) {
  for (const double position : {0.5, 21.0}) {
    const bool joint = position > 10;
    const std::string suffix = joint ? "_joint" : "";
    db.local("drop_identity" + suffix, [joint](Graph& graph, Node& node) { return drop_identity(graph, node, joint); })
        .tracks(Trait::kIdentity)
        .at(position)
        .tags({"fast_compile", "fast_run", "identity"});
    db.local("drop_trivial_view" + suffix, drop_trivial_view)
        .tracks(Trait::kView)
        .at(position)
        .tags({"fast_compile", "fast_run", "identity"});
  }
}

}  // namespace hybridnet::passes
