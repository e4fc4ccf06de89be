#include "passes/control_gradient.h"

#include "graph/control/control_flow.h"
#include "passes/branches/cond_gradient.h"
#include "passes/loops/checkpoint_loops.h"
#include "passes/loops/loop_gradient.h"

namespace hybridnet {
namespace {

template <typename P>
std::function<ParamsPtr(int32_t)> widen_params(const Node& node) {
  return [&node](int32_t added) {
    P p = params_of<P>(node);
    p.num_out_data += added;
    p.num_outputs += added;
    return ParamSchema<P>::box(std::move(p));
  };
}

Loop loop_of_foreach(const Graph& graph, const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  Loop loop;
  loop.sources = body_sources(node, 0);
  loop.state_inputs = to_ints(p.in_state_locs);
  loop.is_slice.assign(loop.sources.size(), false);
  for (int at : to_ints(p.in_data_locs)) loop.is_slice[static_cast<size_t>(at)] = true;
  loop.num_out_data = p.num_out_data;
  loop.rows = p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
  loop.reverse = p.reverse;
  if (p.counted) loop.count = node.inputs.back();
  loop.truncate = p.truncate_gradient;
  loop.detach_every = p.detach_every;
  loop.recompute = p.checkpoint == kRecompute || p.checkpoint == kPolicy;
  loop.widen = widen_params<ForeachParams>(node);
  return loop;
}

// A loop with a condition goes back as many iterations as it went, which its last output tells.
Loop loop_of_while(const Node& node) {
  const auto& p = params_of<WhileLoopParams>(node);
  if (!is_bounded_for_gradient(p)) {
    throw UnboundedLoopError(
        {.op = node.op->name,
         .node = node.name,
         .message = "no compiled gradient of a loop without max_iterations, or with a very large one",
         .because = "the values of each iteration are kept for the gradient, and how many there are is not known",
         .fix = "pass a smaller max_iterations as an int, or checkpoint=",
         .where = node.where});
  }
  Loop loop;
  loop.body = 1;
  loop.sources = body_sources(node, 1);
  loop.state_inputs = to_ints(p.func_var_locs);
  loop.is_slice.assign(loop.sources.size(), false);
  loop.num_out_data = p.num_out_data;
  loop.rows = p.max_iterations;
  loop.recompute = p.checkpoint == kRecompute || p.checkpoint == kPolicy;
  loop.count = {NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(node.specs.size()) - 1};
  loop.widen = widen_params<WhileLoopParams>(node);
  return loop;
}

}  // namespace

ControlGradient differentiate_control(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                      const std::vector<bool>& wanted) {
  switch (control_kind(node)) {
    case ControlKind::kForeach:
      return differentiate_loop(graph, node, output_grads, wanted, loop_of_foreach(graph, node));
    case ControlKind::kWhileLoop:
      return differentiate_loop(graph, node, output_grads, wanted, loop_of_while(node));
    default:
      return differentiate_cond(graph, node, output_grads, wanted);
  }
}

}  // namespace hybridnet
