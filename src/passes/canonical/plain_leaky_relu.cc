// A LeakyReLU whose result is a function of the data alone becomes an operator of its own: unlike LeakyReLU, which may
// draw random slopes, it can be merged, fused and folded.
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {

Replacement plain_leaky_relu(Graph& graph, Node& node) {
  const std::string type = text_attribute(node, "act_type");
  if (type == "prelu" || type == "rrelu") return no_change();
  const Op* plain = op_registry().find("_plain_leaky_relu");
  if (!plain) return no_change();
  return replace_with({graph.add(*plain, make_params(*plain, &node, {}), node.inputs, &node), 0});
}

}  // namespace hybridnet::passes
