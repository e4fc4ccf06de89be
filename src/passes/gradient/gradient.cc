#include "passes/gradient/gradient.h"

#include <algorithm>
#include <unordered_set>

#include "graph/gradient_node.h"
#include "op/gradient_types.h"
#include "passes/gradient/control_gradient.h"
#include "passes/loops/checkpoint_loops.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kGradient{"_gradient"}, kOnesLike{"ones_like"}, kZerosLike{"zeros_like"};

// Gradient rules written for this emitter add nodes behind the forward node they belong to.
class GraphEmitter final : public Emitter {
 public:
  explicit GraphEmitter(Graph& graph) : graph_(graph) {}
  void set_origin(const Node* forward) { origin_ = forward; }
  void set_log(std::vector<const Node*>* made) { made_ = made; }  // records the nodes that are added, unless null

  Values emit(const Op& op, ParamsPtr params, std::span<const Value> inputs) override {
    std::vector<NodeEntry> entries;
    for (const Value& input : inputs) entries.push_back(to_entry(input));
    const NodePtr node = graph_.add(op, std::move(params), std::move(entries), nullptr);
    if (made_) made_->push_back(node.get());
    if (origin_) {
      node->name = origin_->name + "_backward";
      node->block = origin_->block;
      node->where = origin_->where;
    }
    Values outputs;
    for (uint32_t i = 0; i < node->specs.size(); ++i) outputs.push_back(to_value(NodeEntry{node, i}));
    return outputs;
  }
  TensorSpec spec(const Value& v) const override { return graph_.spec(to_entry(v)); }

 private:
  Graph& graph_;
  const Node* origin_ = nullptr;
  std::vector<const Node*>* made_ = nullptr;
};

class NodeGradientContext final : public GradientContext {
 public:
  NodeGradientContext(const Graph& graph, const Node& node, const Values& output_grads, const std::vector<bool>& wanted)
      : graph_(graph), node_(node), output_grads_(output_grads), wanted_(wanted) {}

  int num_inputs() const override { return static_cast<int>(node_.inputs.size()); }
  int num_outputs() const override { return static_cast<int>(node_.specs.size()); }
  Value input(int i) const override {
    if (!node_.op->saves().input(i)) undeclared("input", i);
    return to_value(node_.inputs[static_cast<size_t>(i)]);
  }
  Value output(int i) const override {
    if (!node_.op->saves().output(i)) undeclared("output", i);
    return to_value(NodeEntry{NodePtr(const_cast<Node*>(&node_)), static_cast<uint32_t>(i)});
  }
  Value output_grad(int i) const override { return output_grads_[static_cast<size_t>(i)]; }
  const TensorSpec& input_spec(int i) const override { return graph_.spec(node_.inputs[static_cast<size_t>(i)]); }
  const TensorSpec& output_spec(int i) const override { return node_.specs[static_cast<size_t>(i)]; }
  bool wants(int i) const override { return wanted_[static_cast<size_t>(i)]; }
  bool train() const override { return graph_.train(); }

 private:
  [[noreturn]] void undeclared(const char* what, int i) const {
    throw Error(ErrorKind::kError, {.op = node_.op->name,
                                    .message = std::string("the gradient rule reads ") + what + " " +
                                               std::to_string(i) + ", which its Saves do not declare"});
  }
  const Graph& graph_;
  const Node& node_;
  const Values& output_grads_;
  const std::vector<bool>& wanted_;
};

class Differentiation {
 public:
  Differentiation(Graph& graph, const std::vector<int>& wanted, std::vector<AskedRule>* asked)
      : graph_(graph), emitter_(graph), asked_(asked), forward_(held(graph.order())) {
    for (int input : wanted) {
      const NodePtr& variable = graph.inputs()[static_cast<size_t>(input)];
      active_.insert(variable.get());
      if (!is_floating(graph.spec({variable, 0}).dtype)) integers_.insert({variable, 0});
    }
    for (const NodePtr& node : forward_) {
      if (node->is_variable() || node->op->stops_gradient) continue;
      for (const NodeEntry& input : node->inputs) {
        if (wants(input)) reach(node, graph.spec(input).dtype);
      }
    }
  }

  Gradients run(const std::vector<int>& wanted, const std::vector<bool>* heads) {
    Gradients result;
    seed(result, heads);
    result.of_inputs = gradients_of(wanted);
    return result;
  }

  // Gradients of the sum of all elements of `losses`; null: zero.
  std::vector<NodeEntry> run_from(const std::vector<NodeEntry>& losses, const std::vector<int>& wanted) {
    for (const NodeEntry& loss : losses) {
      if (active_.count(loss.node.get()) == 0) continue;
      emitter_.set_origin(loss.node.get());
      const Value like[] = {to_value(loss)};
      arrived_[loss].push_back(emitter_.emit(kOnesLike.op(), kOnesLike.op().default_params, like)[0]);
    }
    return gradients_of(wanted);
  }

 private:
  std::vector<NodeEntry> gradients_of(const std::vector<int>& wanted) {
    const Emitter::Scope scope(emitter_);
    for (auto it = forward_.rbegin(); it != forward_.rend(); ++it) {
      if (!(*it)->is_variable() && active_.count(it->get()) != 0 && graph_.contains(it->get())) differentiate(**it);
    }
    std::vector<NodeEntry> gradients;
    for (int input : wanted) {
      const NodeEntry variable{graph_.inputs()[static_cast<size_t>(input)], 0};
      emitter_.set_origin(variable.node.get());
      gradients.push_back(to_entry(total(variable)));
    }
    return gradients;
  }

  static std::vector<NodePtr> held(const std::vector<Node*>& nodes) { return {nodes.begin(), nodes.end()}; }

  // Records that a gradient flows from the outputs of a node to an input of this dtype. Bodies of loops and branches
  // differentiate floating values only.
  void reach(const NodePtr& node, DType dtype) {
    active_.insert(node.get());
    if (!node->subgraphs.empty()) return;
    for (uint32_t i = 0; i < node->specs.size(); ++i) {
      if (!is_floating(node->specs[i].dtype) && carries_gradient(dtype, node->specs[i].dtype))
        integers_.insert({node, i});
    }
  }

  bool wants(const NodeEntry& entry) const {
    if (active_.count(entry.node.get()) == 0) return false;
    return is_floating(graph_.spec(entry).dtype) || integers_.count(entry) != 0;
  }

  void seed(Gradients& result, const std::vector<bool>* heads) {
    const std::vector<NodeEntry> outputs = graph_.outputs();
    for (const NodeEntry& output : outputs) {
      const bool differentiable = is_floating(graph_.spec(output).dtype) || wants(output);
      result.connected.push_back(differentiable && active_.count(output.node.get()) != 0 ? 1 : 0);
      if (!differentiable || (heads && !(*heads)[result.heads.size()])) {
        result.heads.push_back(-1);
        continue;
      }
      const NodePtr head = graph_.add_input(output.node->name + "_head_gradient", graph_.spec(output));
      head->attrs[kHeadAttribute] = "1";
      result.heads.push_back(graph_.input_index(head.get()));
      if (result.connected.back() != 0) arrived_[output].push_back(to_value(NodeEntry{head, 0}));
    }
  }

  // The sum of the gradients that arrived at an entry; null if none did.
  Value total(const NodeEntry& entry) {
    const auto it = arrived_.find(entry);
    if (it == arrived_.end()) return {};
    Value sum = it->second[0];
    // Pairwise sums are elementwise nodes, which fusion joins to one pass; a variadic sum could not join a chain.
    for (size_t i = 1; i < it->second.size(); ++i) {
      const Value terms[] = {sum, it->second[i]};
      sum = emitter_.emit(kAdd.op(), kAdd.op().default_params, terms)[0];
    }
    arrived_.erase(it);
    return sum;
  }

  void differentiate(Node& node) {
    emitter_.set_origin(&node);
    const NodePtr self(&node);
    Values output_grads;
    bool any = false;
    for (uint32_t i = 0; i < node.specs.size(); ++i) {
      output_grads.push_back(total({self, i}));
      any = any || output_grads.back();
    }
    if (!any) return;
    std::vector<bool> wanted;
    for (const NodeEntry& input : node.inputs) wanted.push_back(wants(input));
    Values grads;
    try {
      if (node.subgraphs.empty()) {
        grads = ask_rule(node, output_grads, wanted);
      } else {
        grads = differentiate_control_node(node, output_grads, wanted);
      }
    } catch (Error& error) {
      error.add_context({.op = node.op->name, .node = node.name, .block = node.block, .where = node.where});
      throw;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (grads[i] && wanted[i]) arrived_[node.inputs[i]].push_back(grads[i]);
    }
  }

  Values ask_rule(const Node& node, const Values& output_grads, const std::vector<bool>& wanted) {
    if (asked_) {
      asked_->push_back({&node, {}, wanted, {}});
      for (const Value& gradient : output_grads) asked_->back().arrives.push_back(static_cast<bool>(gradient));
      emitter_.set_log(&asked_->back().made);
    }
    const NodeGradientContext context(graph_, node, output_grads, wanted);
    Values grads = node.op->gradient(node.params->data(), context);
    emitter_.set_log(nullptr);
    return grads;
  }

  // Replaces a loop or branch by one that keeps the values that its gradient reads. Gradients that refer to it follow.
  Values differentiate_control_node(Node& node, const Values& output_grads, const std::vector<bool>& wanted) {
    std::vector<NodeEntry> arrived;
    for (const Value& gradient : output_grads) arrived.push_back(to_entry(gradient));
    const ControlGradient made = differentiate_control(graph_, node, arrived, wanted);
    if (!made.replaced.empty()) {
      for (auto& [entry, terms] : arrived_) {
        for (Value& term : terms) {
          const auto found = made.replaced.find(to_entry(term));
          if (found != made.replaced.end()) term = to_value(found->second);
        }
      }
    }
    Values grads;
    for (const NodeEntry& gradient : made.of_inputs) grads.push_back(gradient.node ? to_value(gradient) : Value());
    return grads;
  }

  Graph& graph_;
  GraphEmitter emitter_;
  std::vector<AskedRule>* const asked_;
  std::vector<NodePtr> forward_;  // held: a gradient replaces its loop or branch, and nodes that only this read go
  std::unordered_set<const Node*> active_;                 // on a path from a wanted input
  std::unordered_set<NodeEntry, NodeEntryHash> integers_;  // values of other types that have gradients
  std::unordered_map<NodeEntry, Values, NodeEntryHash> arrived_;
};

bool is_gradient_node(const Node* node) { return node->op == &kGradient.op(); }

NodePtr first_gradient_node(const Graph& graph) {
  const std::vector<Node*> nodes = graph.schedule();
  const auto found = std::find_if(nodes.begin(), nodes.end(), is_gradient_node);
  return found == nodes.end() ? NodePtr() : NodePtr(*found);
}

[[noreturn]] void throw_not_differentiated(const Node& node, std::string message, std::string fix) {
  throw UnsupportedError({.op = node.op->name,
                          .node = node.name,
                          .block = node.block,
                          .message = std::move(message),
                          .fix = std::move(fix),
                          .where = node.where});
}

// Replaces one `_gradient` node by the gradients.
void expand(Graph& graph, const NodePtr& node, std::vector<AskedRule>* asked) {
  const auto num_losses = static_cast<size_t>(node->params->as<GradientSpec>().num_losses);
  std::vector<int> wanted;
  for (size_t i = num_losses; i < node->inputs.size(); ++i) {
    const int input = graph.input_index(node->inputs[i].node.get());
    if (input < 0)
      throw_not_differentiated(*node, "a gradient is asked for '" + node->inputs[i].node->name + "'",
                               "ask for gradients of variables");
    wanted.push_back(input);
  }
  for (size_t i = 0; i < num_losses; ++i) {
    if (is_floating(graph.spec(node->inputs[i]).dtype)) continue;
    throw_not_differentiated(
        *node,
        "loss '" + node->inputs[i].node->name + "' is " + graph.spec(node->inputs[i]).str() + ", which has no gradient",
        "give losses of a floating dtype");
  }
  lower_checkpoints(graph);
  const auto losses_end = node->inputs.begin() + static_cast<std::ptrdiff_t>(num_losses);
  const std::vector<NodeEntry> found =
      Differentiation(graph, wanted, asked).run_from({node->inputs.begin(), losses_end}, wanted);
  for (uint32_t i = 0; i < found.size(); ++i) {
    NodeEntry gradient = found[i];
    if (!gradient.node) {
      const NodeEntry variable = node->inputs[num_losses + i];
      gradient = {graph.add(kZerosLike.op(), kZerosLike.op().default_params, {variable}, nullptr), 0};
    }
    graph.replace({node, i}, gradient);
  }
  graph.drop_unread({node});
}

}  // namespace

bool has_gradient_nodes(const Graph& graph) {
  const std::vector<Node*> nodes = graph.order();
  return std::any_of(nodes.begin(), nodes.end(), is_gradient_node);
}

void expand_gradient_nodes(Graph& graph, std::vector<AskedRule>* asked) {
  while (const NodePtr node = first_gradient_node(graph)) {
    expand(graph, node, asked);
    asked = nullptr;  // further nodes may differentiate the results of the first
  }
}

Gradients add_gradients(Graph& graph, const std::vector<int>& wanted_inputs, const std::vector<bool>* heads,
                        std::vector<AskedRule>* asked) {
  lower_checkpoints(graph);
  return Differentiation(graph, wanted_inputs, asked).run(wanted_inputs, heads);
}

std::vector<RuleNode> ask_gradient_rule(const Graph& graph, const Node& node, const std::vector<bool>& arrives,
                                        const std::vector<bool>& wanted) {
  Graph alone(graph.train());
  const auto variable = [&](const TensorSpec& spec) { return NodeEntry{alone.add_input(node.name, spec), 0}; };
  std::vector<NodeEntry> inputs;
  for (const NodeEntry& input : node.inputs) inputs.push_back(variable(graph.spec(input)));
  const NodePtr copy = alone.add(*node.op, node.params, std::move(inputs), &node);
  Values output_grads;
  for (size_t i = 0; i < arrives.size(); ++i)
    output_grads.push_back(arrives[i] ? to_value(variable(copy->specs[i])) : Value{});
  GraphEmitter emitter(alone);
  std::vector<const Node*> made;
  emitter.set_log(&made);
  const Emitter::Scope scope(emitter);
  const NodeGradientContext context(alone, *copy, output_grads, wanted);
  node.op->gradient(node.params->data(), context);
  std::vector<RuleNode> nodes;
  for (const Node* one : made) nodes.push_back({one->op, one->params});
  return nodes;
}

}  // namespace hybridnet
