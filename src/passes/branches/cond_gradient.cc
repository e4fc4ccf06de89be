#include "passes/branches/cond_gradient.h"

#include <algorithm>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/body_gradient.h"
#include "passes/gradient_nodes.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

using Kind = BackwardInput::Kind;

class CondGradient {
 public:
  CondGradient(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads, const std::vector<bool>& wanted)
      : graph_(graph), node_(node), output_grads_(output_grads), wanted_(wanted) {
    const auto& p = params_of<CondParams>(node);
    then_extra_ = p.then_extra;
    else_extra_ = p.else_extra;
    common_ = p.num_outputs - then_extra_ - else_extra_;
  }

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
    std::vector<int> sources;       // node input of each input of the body
    std::vector<NodeEntry> values;  // outside value of each input of the backward body
  };

  // Number of the node's output that a body's output is.
  int output_number(size_t branch, int output) const {
    return output < common_ || branch == 0 ? output : output + then_extra_;
  }

  Branch differentiate(size_t b) {
    Branch branch;
    branch.sources = body_sources(node_, b + 1);
    Graph body = prepared_body(graph_, node_, b + 1);
    std::vector<bool> wanted, heads;
    for (size_t k = 0; k < branch.sources.size(); ++k)
      wanted.push_back(wanted_[static_cast<size_t>(branch.sources[k])] &&
                       is_floating(body.inputs()[k]->specs[0].dtype));
    for (size_t i = 0; i < body.outputs().size(); ++i) {
      const auto number = static_cast<size_t>(output_number(b, static_cast<int>(i)));
      heads.push_back(output_grads_[number].node && is_floating(body.spec(body.outputs()[i]).dtype));
    }
    branch.gradient = differentiate_body(std::move(body), wanted, heads);
    return branch;
  }

  // Node inputs that a gradient reaches in one of the branches.
  void find_gradients() {
    std::vector<bool> reached(node_.inputs.size());
    for (const Branch& branch : branches_)
      for (size_t k = 0; k < branch.sources.size(); ++k)
        if (branch.gradient.grad_of_input[k] >= 0) reached[static_cast<size_t>(branch.sources[k])] = true;
    for (size_t i = 0; i < reached.size(); ++i)
      if (reached[i]) given_.push_back(static_cast<int>(i));
  }

  // The predicate as a value of this graph: both directions take the same branch.
  NodeEntry predicate() {
    const Subgraph& pred = *node_.subgraphs[0];
    const std::vector<int> sources = body_sources(node_, 0);
    const Node& head = *pred.outputs[0].node;
    if (head.op->name == "_copy" && head.inputs[0].node->is_variable() && sources.size() == 1)
      return node_.inputs[static_cast<size_t>(sources[0])];
    const Graph body = prepared_body(graph_, node_, 0);
    EntryMap map;
    for (size_t k = 0; k < sources.size(); ++k)
      map[{body.inputs()[k], 0}] = node_.inputs[static_cast<size_t>(sources[k])];
    return graph_.import(body, body.outputs(), map)[0];
  }

  static Ref<Subgraph> pass_through(const TensorSpec& spec) {
    auto body = make_ref<Subgraph>();
    const NodePtr variable = make_variable("pred");
    variable->specs = {spec};
    const NodePtr copy = make_node(kCopy.op(), "pred_copy", kCopy.op().default_params, {{variable, 0}});
    copy->specs = {spec};
    body->inputs = {variable};
    body->outputs = {{copy, 0}};
    return body;
  }

  void make_forward(const NodeEntry& pred) {
    std::vector<NodeEntry> extra[2];
    for (size_t b = 0; b < 2; ++b) {
      const SplitGraph& split = branches_[b].gradient.split;
      const size_t num_outputs = static_cast<size_t>(common_ + (b == 0 ? then_extra_ : else_extra_));
      extra[b].assign(split.forward.outputs().begin() + static_cast<long>(num_outputs), split.forward.outputs().end());
    }
    forward_ = NodePtr(&node_);
    const auto added_then = static_cast<int>(extra[0].size()), added_else = static_cast<int>(extra[1].size());
    if (added_then + added_else > 0) {
      CondParams p = params_of<CondParams>(node_);
      std::vector<NodeEntry> inputs = node_.inputs;
      p.cond_input_locs = {static_cast<int64_t>(inputs.size())};
      inputs.push_back(pred);
      p.then_extra += added_then;
      p.else_extra += added_else;
      p.num_outputs += added_then + added_else;
      p.num_args = static_cast<int32_t>(inputs.size());
      std::vector<uint32_t> new_index;
      for (int i = 0; i < common_ + then_extra_ + else_extra_; ++i)
        new_index.push_back(static_cast<uint32_t>(i < common_ + then_extra_ ? i : i + added_then));
      std::vector<Ref<Subgraph>> bodies{pass_through(graph_.spec(pred))};
      for (size_t b = 0; b < 2; ++b)
        bodies.push_back(freeze(branches_[b].gradient.split.forward, branches_[b].gradient.split.forward.outputs()));
      forward_ = replace_node(graph_, node_, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs),
                              std::move(bodies), new_index, result_.replaced);
    }
    for (size_t b = 0; b < 2; ++b) {
      for (const BackwardInput& source : branches_[b].gradient.split.sources) {
        int number = source.index;
        switch (source.kind) {
          case Kind::kForwardInput:
            branches_[b].values.push_back(
                node_.inputs[static_cast<size_t>(branches_[b].sources[static_cast<size_t>(number)])]);
            continue;
          case Kind::kHead:
            branches_[b].values.push_back(output_grads_[static_cast<size_t>(
                output_number(b, branches_[b].gradient.output_of_head[static_cast<size_t>(number)]))]);
            continue;
          case Kind::kForwardOutput:
            number = number < common_ || b == 0 ? number : number + then_extra_ + added_then;
            break;
          case Kind::kResidual:
            number += b == 0 ? common_ + then_extra_ : common_ + then_extra_ + added_then + else_extra_;
            break;
        }
        branches_[b].values.push_back({forward_, static_cast<uint32_t>(number)});
      }
    }
  }

  void make_backward(const NodeEntry& pred) {
    CondParams p;
    std::vector<NodeEntry> inputs{pred};
    p.cond_input_locs = {0};
    std::vector<Ref<Subgraph>> bodies{pass_through(graph_.spec(pred))};
    for (size_t b = 0; b < 2; ++b) {
      OptionalInts& locs = b == 0 ? p.then_input_locs : p.else_input_locs;
      for (const NodeEntry& value : branches_[b].values) {
        auto at = std::find(inputs.begin() + 1, inputs.end(), value);
        locs.push_back(at - inputs.begin());
        if (at == inputs.end()) inputs.push_back(value);
      }
      Graph& backward = branches_[b].gradient.split.backward;
      const std::vector<NodeEntry> gradients = backward.outputs();
      std::vector<NodeEntry> outputs;
      for (int input : given_) {
        NodeEntry total;
        for (size_t k = 0; k < branches_[b].sources.size(); ++k) {
          const int gradient = branches_[b].gradient.grad_of_input[k];
          if (branches_[b].sources[k] == input && gradient >= 0)
            total = sum(backward, total, gradients[static_cast<size_t>(gradient)], nullptr);
        }
        outputs.push_back(total.node ? total
                                     : zeros(backward, graph_.spec(node_.inputs[static_cast<size_t>(input)]), nullptr));
      }
      bodies.push_back(freeze(backward, outputs));
    }
    p.num_args = static_cast<int32_t>(inputs.size());
    p.num_outputs = static_cast<int32_t>(given_.size());
    const NodePtr made =
        graph_.add(*node_.op, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs), &node_, std::move(bodies));
    made->name = node_.name + "_backward";
    for (size_t i = 0; i < given_.size(); ++i)
      result_.of_inputs[static_cast<size_t>(given_[i])] = {made, static_cast<uint32_t>(i)};
  }

  Graph& graph_;
  Node& node_;
  const std::vector<NodeEntry>& output_grads_;
  const std::vector<bool>& wanted_;
  int common_ = 0, then_extra_ = 0, else_extra_ = 0;
  Branch branches_[2];
  std::vector<int> given_;
  NodePtr forward_;
  ControlGradient result_;
};

}  // namespace

ControlGradient differentiate_cond(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted) {
  return CondGradient(graph, node, output_grads, wanted).run();
}

}  // namespace hybridnet
