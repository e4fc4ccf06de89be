// Loops and branches inside a plan: kernels that run linked sub-plans.
#pragma once

#include "graph/control/control_flow.h"
#include "plan/plan.h"

namespace hybridnet {

class ControlKernel : public Kernel {
 public:
  virtual int64_t cost_ns() const = 0;  // of one run, estimated
  virtual int cores() const = 0;        // that one run can use
};

// The one element of value; of half floats only whether it is zero.
double number_at(const TensorRef& value);
// Is the one element of value not zero?
bool is_true(const TensorRef& value);
// In a handler of Error: throws it again, with the place in the loop or branch ("loop0, iteration 17") before the node.
[[noreturn]] void fail_in_body(const std::string& place);

// How iterations of a foreach run that do not depend on each other: one after the other with all cores each, or side by
// side with one core each; automatic by cost. Results are the same to the bit. Others run one after the other.
enum class LoopMode : int8_t { kAuto, kInline, kAhead };
LoopMode loop_mode_from_name(std::string_view name);  // auto | inline | ahead; throws ValueError
LoopMode set_loop_mode(LoopMode mode);  // of the process, at first HYBRIDNET_LOOP_MODE; returns the former

// Which loop it is, for messages.
struct LoopOrigin {
  std::string name;
  SourceLocation where;
};
// The number of iterations that a run of a loop is allowed, from the element that was given for it. Throws ParamError.
int64_t limit_of_run(const LoopOrigin& loop, const TensorRef& given);
// A loop was ended by its limit while its condition still holds. on_limit: "warn" or "raise".
void report_limit(const LoopOrigin& loop, const std::string& on_limit, int64_t limit);

// Compiles the bodies of node for these specs. `arenas`: of the plan that the node stands in. Throws what compiling the
// bodies throws.
Ref<ControlKernel> link_control(const Node& node, const LinkContext& context, const std::string& name,
                                ArenaPool& arenas);

}  // namespace hybridnet
