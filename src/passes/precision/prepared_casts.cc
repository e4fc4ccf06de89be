// Prediction: weights are cast to 16 bits once, not in each call.
#include <algorithm>

#include "passes/attributes.h"
#include "passes/preparation.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// True for the weights and the bias of a layer, which are parameters in nearly all programs. The preparation runs again
// if they change, so data in their place gives the same results, but saves nothing.
bool reads_as_weight(const Client& client) {
  return client.kind == Client::Kind::kNode && client.index > 0 && client.node->op->amp == AmpType::kHalf;
}

}  // namespace

Replacement prepared_casts(Graph& graph, Node& node) {
  if (graph.train() || is_preparation(node) || !is_parameter(graph, node.inputs[0])) return no_change();
  const std::vector<Client>& readers = graph.clients(node, 0);
  if (!is_half(node.specs[0].dtype) || !std::all_of(readers.begin(), readers.end(), reads_as_weight))
    return no_change();
  const NodePtr made = graph.add(*node.op, node.params, node.inputs, &node);
  mark_as_preparation(*made);
  return replace_with({made, 0});
}

}  // namespace hybridnet::passes
