// Loops and branches inside a plan: kernels that run linked sub-plans.
#pragma once

#include "base/interrupt.h"
#include "graph/control/control_flow.h"
#include "graph/control/rules.h"
#include "plan/control/state_memory.h"
#include "plan/plan.h"

namespace hybridnet {

class ControlKernel : public Kernel {
 public:
  struct Body {
    std::string name;
    const Plan* plan = nullptr;
  };
  virtual std::vector<Body> bodies() const = 0;  // for Plan::text()
  // The estimated time of one run on inputs of these specs, and the number of cores that it can use.
  virtual int64_t cost_ns(std::span<const TensorSpec> in) const = 0;
  virtual int cores(std::span<const TensorSpec> in) const = 0;
  virtual bool needs_host() const = 0;  // see Plan::needs_host

 private:
  friend Ref<ControlKernel> link_control(const Node&, const LinkContext&, const Plan::Options&,
                                         std::span<const LentMemory>, Kernel*);
  bool serves(const Node& node, std::span<const TensorSpec> in, std::span<const LentMemory> lent) const;

  // The arguments that it was linked for.
  ParamsPtr params_;
  std::vector<Ref<Subgraph>> subgraphs_;
  std::vector<std::vector<TensorSpec>> body_inputs_;
  std::vector<LentMemory> lent_;
};

// In a handler of Error: rethrows it with the place in the loop or branch ("loop0, iteration 17") before the node.
[[noreturn]] void fail_in_body(const std::string& place);

// The way to run iterations of a foreach that do not depend on each other: one after the other with all cores each, or
// in parallel with one core each; automatic: by cost. Results are the same to the bit. Dependent iterations run one
// after the other.
enum class LoopMode : int8_t { kAuto, kInline, kAhead };
LoopMode loop_mode_from_name(std::string_view name);  // auto | inline | ahead; throws ValueError
LoopMode set_loop_mode(LoopMode mode);  // process-wide, at first HYBRIDNET_LOOP_MODE; returns the previous mode

// Called between iterations: throws if the loop has gone on for too long after an interrupt.
void check_interrupt(InterruptWatch& watch);

// Compiles the bodies of node for these specs, unless `known`, a kernel of the node for other specs or null, has bodies
// for the same sizes: the number of rows is read from the arrays of each run. lent: per state of a loop. Throws the
// errors of compiling the bodies.
Ref<ControlKernel> link_control(const Node& node, const LinkContext& context, const Plan::Options& around,
                                std::span<const LentMemory> lent, Kernel* known);

}  // namespace hybridnet
