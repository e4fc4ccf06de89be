// Loops and branches as nodes. What their bodies mean for inference is in graph/control/infer.cc, their gradients are
// in passes/control_gradient.cc, and plan/control/control_kernel.cc runs them.
#include "graph/control/control_flow.h"

#include "ops/control_flow/declare_control.h"

namespace hybridnet::ops {

void register_control_flow(OpRegistry& ops) {
  declare_control<ForeachParams>(ops, "_foreach", {"body"})
      .doc("Runs the body once per slice of the data along axis 0; outputs are stacked, states pass on.")
      .num_outputs([](const ForeachParams& p) { return p.num_outputs; });
  declare_control<WhileLoopParams>(ops, "_while_loop", {"cond", "func"})
      .doc("Runs the body while the condition holds; outputs are padded with zeros to max_iterations rows.")
      .num_outputs([](const WhileLoopParams& p) { return p.num_outputs + 1; })
      .num_visible_outputs([](const WhileLoopParams& p) { return p.num_outputs; });
  declare_control<CondParams>(ops, "_cond", {"pred", "then_branch", "else_branch"})
      .doc("Runs the then branch if the predicate is not zero, else the else branch.")
      .num_outputs([](const CondParams& p) { return p.num_outputs; });
}

}  // namespace hybridnet::ops
