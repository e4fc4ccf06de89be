#include "passes/branches/cond_gradient.h"

#include <algorithm>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "passes/gradient/body_gradient.h"
#include "passes/gradient/node_builders.h"

namespace hybridnet {
namespace {

using Kind = BackwardInput::Kind;

class CondGradient {
 public:
  CondGradient(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads, const std::vector<bool>& wanted)
      : graph_(graph), node_(node), output_grads_(output_grads), wanted_(wanted), spec_(branch_of(node)) {}

  ControlGradient run() {
    result_.of_inputs.resize(node_.inputs.size());
    for (size_t b = 0; b < 2; ++b) branches_[b] = differentiate(b);
    find_gradients();
    if (given_.empty()) return std::move(result_);
    const NodeEntry pred = predicate();
    make_forward(pred);
    make_backward(pred);
    return std::move(result_);
  }

 private:
  struct Branch {
    BodyGradient gradient;
    std::vector<NodeEntry> values;  // outside value of each input of the backward body
  };

  Branch differentiate(size_t b) {
    Graph body = prepared_body(graph_, node_, b + 1);
    std::vector<bool> wanted, heads;
    for (size_t k = 0; k < node_.inputs.size(); ++k)
      wanted.push_back(wanted_[k] && is_floating(body.inputs()[k]->specs[0].dtype));
    for (size_t i = 0; i < body.outputs().size(); ++i)
      heads.push_back(output_grads_[spec_.output_of(b, i)].node && is_floating(body.spec(body.outputs()[i]).dtype));
    const PipelineScope scope(node_, b + 1);
    return {differentiate_body(std::move(body), wanted, heads), {}};
  }

  // Node inputs that a gradient reaches in one of the branches.
  void find_gradients() {
    for (size_t k = 0; k < node_.inputs.size(); ++k)
      if (branches_[0].gradient.grad_of_input[k] >= 0 || branches_[1].gradient.grad_of_input[k] >= 0)
        given_.push_back(k);
  }

  // The predicate as a value of this graph: both directions take the same branch.
  NodeEntry predicate() {
    if (const int direct = direct_predicate(node_); direct >= 0) return node_.inputs[static_cast<size_t>(direct)];
    const Graph body = prepared_body(graph_, node_, 0);
    EntryMap map;
    for (size_t k = 0; k < node_.inputs.size(); ++k) map[{body.inputs()[k], 0}] = node_.inputs[k];
    return graph_.import(body, body.outputs(), map)[0];
  }

  void make_forward(const NodeEntry& pred) {
    BranchSpec wider = spec_;
    std::array<BoundBody, 3> bodies{predicate_of(pred, graph_.spec(pred))};
    for (size_t b = 0; b < 2; ++b) {
      const Graph& forward = branches_[b].gradient.split.forward;
      (b == 0 ? wider.then_extra : wider.else_extra) = static_cast<int32_t>(forward.outputs().size() - spec_.outs());
      bodies[b + 1] = {freeze(forward, forward.outputs()), node_.inputs};
    }
    forward_ = NodePtr(&node_);
    if (wider.num_outputs() > spec_.num_outputs()) {
      forward_ = add_cond(graph_, node_, wider, std::move(bodies));
      std::vector<NodeEntry> now(node_.specs.size());
      for (size_t b = 0; b < 2; ++b)
        for (size_t i = 0; i < spec_.outputs_of(b); ++i)
          now[spec_.output_of(b, i)] = {forward_, static_cast<uint32_t>(wider.output_of(b, i))};
      const NodePtr self(&node_);
      for (uint32_t i = 0; i < now.size(); ++i) result_.replaced[{self, i}] = now[i];
      move_readers(graph_, node_, now);
    }
    for (size_t b = 0; b < 2; ++b) {
      for (const BackwardInput& source : branches_[b].gradient.split.sources) {
        const auto index = static_cast<size_t>(source.index);
        branches_[b].values.push_back(
            source.kind == Kind::kForwardInput ? node_.inputs[index]
            : source.kind == Kind::kHead
                ? output_grads_[spec_.output_of(b, static_cast<size_t>(branches_[b].gradient.output_of_head[index]))]
                : NodeEntry{forward_, static_cast<uint32_t>(wider.output_of(
                                          b, source.kind == Kind::kResidual ? spec_.outputs_of(b) + index : index))});
      }
    }
  }

  void make_backward(const NodeEntry& pred) {
    std::array<BoundBody, 3> bodies{predicate_of(pred, graph_.spec(pred))};
    for (size_t b = 0; b < 2; ++b) {
      Graph& backward = branches_[b].gradient.split.backward;
      const std::vector<NodeEntry> gradients = backward.outputs();
      std::vector<NodeEntry> outputs;
      for (size_t slot : given_) {
        const int gradient = branches_[b].gradient.grad_of_input[slot];
        outputs.push_back(gradient >= 0 ? gradients[static_cast<size_t>(gradient)]
                                        : zeros(backward, graph_.spec(node_.inputs[slot]), nullptr));
      }
      bodies[b + 1] = {freeze(backward, outputs), branches_[b].values};
    }
    BranchSpec spec;
    spec.num_out = static_cast<int32_t>(given_.size());
    const NodePtr made = add_cond(graph_, node_, spec, std::move(bodies));
    made->attrs.clear();
    made->name = node_.name + "_backward";
    for (size_t i = 0; i < given_.size(); ++i) result_.of_inputs[given_[i]] = {made, static_cast<uint32_t>(i)};
  }

  Graph& graph_;
  Node& node_;
  const std::vector<NodeEntry>& output_grads_;
  const std::vector<bool>& wanted_;
  const BranchSpec spec_;
  Branch branches_[2];
  std::vector<size_t> given_;
  NodePtr forward_;
  ControlGradient result_;
};

}  // namespace

ControlGradient differentiate_cond(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted) {
  return CondGradient(graph, node, output_grads, wanted).run();
}

}  // namespace hybridnet
