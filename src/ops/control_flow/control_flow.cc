// Loops and branches as nodes. graph/control/infer.cc infers from their bodies, passes/gradient/control_gradient.cc has
// their gradients, and plan/control/control_kernel.cc runs them.
#include "graph/control/control_flow.h"

#include "ops/control_flow/declare_control.h"

namespace hybridnet::ops {
namespace {

// The last value of a state may use the memory of its first value.
int first_state(const LoopSpec& loop, int output) {
  const int state = output - loop.num_out;
  return state >= 0 && state < loop.num_carry ? loop.num_seq + state : -1;
}

}  // namespace

void register_control_flow(OpRegistry& ops) {
  declare_control<LoopSpec>(ops, "_foreach", {"body"})
      .doc(
          "Runs the body once per slice of the data along axis 0; outputs are stacked, states pass to the next "
          "iteration.")
      .variadic_inplace(first_state)
      .num_outputs([](const LoopSpec& p) { return p.num_out + p.num_carry; });
  declare_control<LoopSpec>(ops, "_while_loop", {"cond", "func"})
      .doc("Runs the body while the condition holds; outputs are padded with zeros to max_iterations rows.")
      .variadic_inplace(first_state)
      .num_outputs([](const LoopSpec& p) { return p.num_out + p.num_carry + 1; })
      .num_visible_outputs([](const LoopSpec& p) { return p.num_out + p.num_carry; });
  declare_control<BranchSpec>(ops, "_cond", {"pred", "then_branch", "else_branch"})
      .doc("Runs the then branch if the predicate is not zero, else the else branch.")
      .num_outputs([](const BranchSpec& p) { return p.num_outputs(); });
}

}  // namespace hybridnet::ops
