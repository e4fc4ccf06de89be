// The casts of contrib.amp become Cast once dtypes are known: casts of parameters can then be made once, and other
// rewrites see them.
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCast{"Cast"};

}  // namespace

Replacement plain_amp_casts(Graph& graph, Node& node) {
  Replacement made;
  for (size_t i = 0; i < node.specs.size(); ++i) {
    const bool used = graph.is_used(node, static_cast<int>(i));
    const std::string dtype = dtype_name(node.specs[i].dtype);
    made.outputs.push_back(used ? emit(graph, kCast, {node.inputs[i]}, {{"dtype", dtype}}, &node) : NodeEntry{});
  }
  return made;
}

}  // namespace hybridnet::passes
