#include "passes/gradient/control_gradient.h"

#include "graph/control/control_flow.h"
#include "passes/branches/cond_gradient.h"
#include "passes/loops/loop_gradient.h"

namespace hybridnet {

ControlGradient differentiate_control(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                      const std::vector<bool>& wanted) {
  return control_kind(node) == ControlKind::kCond ? differentiate_cond(graph, node, output_grads, wanted)
                                                  : differentiate_loop(graph, node, output_grads, wanted);
}

}  // namespace hybridnet
