// Loops and branches inside a plan: kernels that run linked sub-plans.
#pragma once

#include "base/interrupt.h"
#include "graph/control/control_flow.h"
#include "graph/control/rules.h"
#include "plan/plan.h"

namespace hybridnet {

class ControlKernel : public Kernel {
 public:
  struct Body {
    std::string name;
    const Plan* plan = nullptr;
  };
  virtual std::vector<Body> bodies() const = 0;  // for Plan::text()
  virtual int64_t cost_ns() const = 0;           // of one run, estimated
  virtual int cores() const = 0;                 // that one run can use
};

// In a handler of Error: throws it again, with the place in the loop or branch ("loop0, iteration 17") before the node.
[[noreturn]] void fail_in_body(const std::string& place);

// How iterations of a foreach run that do not depend on each other: one after the other with all cores each, or side by
// side with one core each; automatic by cost. Results are the same to the bit. Others run one after the other.
enum class LoopMode : int8_t { kAuto, kInline, kAhead };
LoopMode loop_mode_from_name(std::string_view name);  // auto | inline | ahead; throws ValueError
LoopMode set_loop_mode(LoopMode mode);  // of the process, at first HYBRIDNET_LOOP_MODE; returns the former

// Between iterations: throws if the user wants to stop, and the loop goes on although a wait for it was stopped.
void check_interrupt(InterruptWatch& watch);

// Compiles the bodies of node for these specs, unless `around`, the options of the plan that the node stands in, knows
// plans of them. Throws what compiling the bodies throws.
Ref<ControlKernel> link_control(const Node& node, const LinkContext& context, const Plan::Options& around);

}  // namespace hybridnet
