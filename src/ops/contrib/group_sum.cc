// The sum over the processes of the group, as an operator: for graphs. Imperative calls are imperative/group_arrays.
#include <string>

#include "group/lane.h"
#include "hybridnet/declare.h"
#include "hybridnet/gradient.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

const OpRef kGroupSum{"_group_sum"};

struct GroupSumParams {
  std::string label, line;
  static void describe(ParamSchema<GroupSumParams>& schema) {
    schema.field("label", &GroupSumParams::label).default_value("").doc("Names the array in errors of the group.");
    schema.field("line", &GroupSumParams::line).default_value("").doc("FILE:LINE of a call without a label.");
  }
};

// It runs on the thread that calls the graph, like code outside the library (opaque): the calls of a process keep the
// order of its program, and no worker waits for other processes.
void run_group_sum(const GroupSumParams& p, const KernelArgs& args) {
  const TensorRef &in = args.in[0], &out = args.out[0];
  group::Call collective{.kind = group::Call::Kind::kSum, .dtype = in.dtype, .count = in.size(), .label = p.label};
  collective.add_shape(*in.shape);
  if (p.label.empty())
    collective.label = TensorSpec{*in.shape, in.dtype}.str() + (p.line.empty() ? "" : " at " + p.line);
  const UserCodeScope may_wait;
  group::push_call("sum over the group", {}, {}, 0,
                   [&collective, from = in.data, to = out.data](group::Group& group, uint64_t number) {
                     const void* const node = from;
                     group.sum(collective, number, {&node, 1}, to);
                   });
  group::wait_for_calls();
}

}  // namespace

void register_group_sum(OpRegistry& ops) {
  ops.declare<GroupSumParams>("_group_sum")
      .doc("Sum over the processes of mx.group, in a fixed order: the same bits in each process.")
      .internal()
      .input("data", "any shape and dtype, the same in all processes")
      .output("out", "shape and dtype of data")
      .infer([](const GroupSumParams&, InferContext& c) {
        c.unify_shapes();
        c.unify_dtypes();
      })
      .cpu(run_group_sum, kAllDTypes)
      .gradient(
          [](const GroupSumParams& p, const GradientContext& g) -> Values {
            // The structure of the graph decides whether there is a gradient, so it is the same in all processes.
            if (!g.output_grad(0)) return {Value{}};
            const std::string what = p.label.empty() ? "a sum" + (p.line.empty() ? "" : " at " + p.line) : p.label;
            const std::string label = "the gradient of " + what;
            return {call(kGroupSum, {g.output_grad(0)}, {{"label", AttrValue(label)}})};
          },
          Saves::nothing())
      .opaque()
      .may_raise()
      .sample(Sample{.inputs = {{2, 3}}});
}

}  // namespace hybridnet::ops
