#include "plan/node_by_node.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/control_flow.h"
#include "hybridnet/custom.h"
#include "hybridnet/imperative.h"
#include "plan/control/control_kernel.h"
#include "plan/control/loop_by_node.h"
#include "plan/control/loop_rows.h"
#include "plan/control/while_by_node.h"
#include "plan/graph_function.h"
#include "plan/place.h"

namespace hybridnet {
namespace {

const OpRef kCustom{"Custom"};

constexpr int kWholeNode = -1;  // number of the function that runs all of a loop or branch

const CustomParams* lazy_use(const Node& node) {
  if (node.op != &kCustom.op()) return nullptr;
  const auto& use = node.params->as<CustomParams>();
  return custom_operators(use).is_lazy(use) ? &use : nullptr;
}

// Its branches run here, so what only one of them reads is not computed for the other.
bool is_lazy_cond(const Node& node) {
  return control_kind(node) == ControlKind::kCond &&
         (NodeByNode::is_needed_for(node) || (autograd_state().recording && has_unbounded_body(node)));
}

// Passes results on. Arrays that were left out, because nobody asked for what they lead to, get a gradient of zero.
class LeftOut final : public RecordedFunction {
 public:
  explicit LeftOut(std::vector<TensorSpec> left_out) : left_out_(std::move(left_out)) {}
  std::string name() const override { return "left_out"; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override {
    std::vector<NDArray> grads(out_grads.begin(), out_grads.end());
    for (const TensorSpec& spec : left_out_) grads.push_back(zeros(spec));
    return grads;
  }

 private:
  const std::vector<TensorSpec> left_out_;
};

}  // namespace

bool NodeByNode::is_needed_for(const Node& node) { return has_dynamic_shape(node); }

// ------------------------------------------------------------------------------------------------------------- one
// call
class NodeByNode::Run {
 public:
  Run(NodeByNode& graph, std::span<const NDArray> inputs) : graph_(graph), inputs_(inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) values_[graph.definition_.inputs[i].get()] = {inputs[i]};
  }

  std::vector<NDArray> outputs() {
    compute(graph_.definition_.outputs);
    std::vector<NDArray> results;
    for (const NodeEntry& output : graph_.definition_.outputs) results.push_back(value(output));
    return results;
  }

 private:
  NDArray value(const NodeEntry& entry) const { return values_.at(entry.node.get())[entry.index]; }

  // Runs what these entries need and has not run.
  void compute(std::span<const NodeEntry> entries) {
    for (const Node* node : missing(entries)) {
      if (values_.count(node) != 0) continue;  // a lazy node before it has asked for it
      try {
        values_[node] = results_of(*node);
      } catch (Error& error) {
        error.add_context({.op = node->op->name, .node = node->name, .block = node->block, .where = node->where});
        throw;
      }
    }
  }

  // In the order to run them. Inputs of lazy nodes are not among them.
  std::vector<const Node*> missing(std::span<const NodeEntry> entries) const {
    std::vector<const Node*> order;
    std::unordered_set<const Node*> seen;
    std::vector<std::pair<const Node*, size_t>> path;
    auto enter = [&](const Node* node) {
      if (values_.count(node) == 0 && seen.insert(node).second) path.emplace_back(node, 0);
    };
    for (const NodeEntry& entry : entries) {
      enter(entry.node.get());
      while (!path.empty()) {
        auto& [node, next] = path.back();
        if (next < num_eager_inputs(*node)) {
          enter(node->inputs[next++].node.get());
        } else {
          order.push_back(node);
          path.pop_back();
        }
      }
    }
    return order;
  }

  static size_t num_eager_inputs(const Node& node) {
    if (node.is_variable()) return 0;
    return lazy_use(node) != nullptr || is_lazy_cond(node) ? 0 : node.inputs.size();
  }

  std::vector<NDArray> results_of(const Node& node) {
    if (node.is_variable()) return {NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node.constant.get())))};
    if (const CustomParams* use = lazy_use(node)) return run_lazy(node, *use);
    if (is_lazy_cond(node)) return run_cond(node);
    std::vector<NDArray> arguments;
    for (const NodeEntry& input : node.inputs) arguments.push_back(value(input));
    if (node.subgraphs.empty()) {
      const PlaceScope place(node, PlaceScope::kOperator);
      return invoke(*node.op, node.params, arguments);
    }
    return run_loop(node, arguments);
  }

  // --------------------------------------------------------------------------------------------- lazy operators, cond
  std::vector<NDArray> run_lazy(const Node& node, const CustomParams& use) {
    const PlaceScope place(node, PlaceScope::kOperator);
    std::vector<bool> asked(node.inputs.size());
    const std::vector<TensorSpec> specs = specs_of(node);
    std::vector<NDArray> results = custom_operators(use).call_lazy(use, specs, [&](size_t input) {
      asked[input] = true;
      compute({&node.inputs[input], 1});
      return value(node.inputs[input]);
    });
    return note_left_out(node, asked, std::move(results));
  }

  std::vector<NDArray> run_cond(const Node& node) {
    std::vector<bool> asked(node.inputs.size());
    auto run_body = [&](size_t body) {
      std::vector<NDArray> arguments;
      const std::vector<bool> read = read_inputs(*node.subgraphs[body]);
      for (size_t input = 0; input < read.size(); ++input) {
        if (!read[input]) continue;
        asked[input] = true;
        compute({&node.inputs[input], 1});
        arguments.push_back(value(node.inputs[input]));
      }
      return graph_.body_of(node, body)->call(arguments, {});
    };
    const NDArray pred = run_body(0)[0];
    pred.wait_to_read();
    const bool taken = is_true(pred.ref());
    std::vector<NDArray> results;
    const PlaceScope place(node, taken ? PlaceScope::kThenBranch : PlaceScope::kElseBranch);
    try {
      results = run_body(taken ? 1 : 2);
    } catch (const Error&) {
      fail_in_body(node.name + (taken ? ", then branch" : ", else branch"));
    }
    return note_left_out(node, asked, std::move(results));
  }

  // Inputs of the graph that only lead to what was not asked for would keep the gradient of an earlier run.
  std::vector<NDArray> note_left_out(const Node& node, const std::vector<bool>& asked, std::vector<NDArray> results) {
    if (!autograd_state().recording || results.empty() || std::find(asked.begin(), asked.end(), false) == asked.end())
      return results;
    std::vector<NodeEntry> left;
    for (size_t i = 0; i < asked.size(); ++i)
      if (!asked[i]) left.push_back(node.inputs[i]);
    std::vector<NDArray> arrays;
    std::vector<TensorSpec> specs;
    for (const Node* source : topological_order(left)) {
      const auto it = values_.find(source);
      if (!source->is_variable() || it == values_.end() || !needs_gradient(it->second[0])) continue;
      arrays.push_back(it->second[0]);
      specs.push_back(it->second[0].spec());
    }
    if (arrays.empty()) return results;
    std::vector<NDArray> passed{results[0].detached()};
    arrays.insert(arrays.begin(), results[0]);
    record(Ref<RecordedFunction>(new LeftOut(std::move(specs))), arrays, passed);
    results[0] = passed[0];
    return results;
  }

  // What is known of the inputs of a node before they are computed.
  std::vector<TensorSpec> specs_of(const Node& node) {
    if (!inferred_) {
      for (size_t i = 0; i < inputs_.size(); ++i) specs_[{graph_.definition_.inputs[i], 0}] = inputs_[i].spec();
      infer_specs(graph_.definition_.outputs, specs_, autograd_state().training);
      inferred_ = true;
    }
    std::vector<TensorSpec> specs;
    for (const NodeEntry& input : node.inputs) specs.push_back(specs_.at(input));
    return specs;
  }

  // --------------------------------------------------------------------------------------------------------------
  // loops
  std::vector<NDArray> run_loop(const Node& node, std::span<const NDArray> arguments) {
    const bool wants_gradient =
        autograd_state().recording && std::any_of(arguments.begin(), arguments.end(), needs_gradient);
    const bool in_steps = has_dynamic_body(node) || (wants_gradient && has_unbounded_body(node));
    if (control_kind(node) == ControlKind::kWhileLoop) {
      WhileLoopByNode loop(graph_, node, arguments, in_steps);
      if (loop.is_needed(wants_gradient)) return loop.run();
    } else if (in_steps) {
      return foreach_by_node(node, *graph_.body_of(node, 0), arguments);
    }
    std::vector<NDArray> results = graph_.whole(node)->call(arguments, {});
    if (has_dynamic_shape(node)) cut_to_count(loop_of(node).num_out, results);
    return results;
  }

  // The rows of iterations that ran: as many as the last output says.
  static void cut_to_count(int num_out_data, std::vector<NDArray>& results) {
    results.back().wait_to_read();
    const int64_t count = *static_cast<const int64_t*>(results.back().data());
    for (int i = 0; i < num_out_data; ++i) {
      NDArray& rows = results[static_cast<size_t>(i)];
      rows = first_rows(rows, count);
    }
  }

  NodeByNode& graph_;
  const std::span<const NDArray> inputs_;
  std::unordered_map<const Node*, std::vector<NDArray>> values_;
  SpecMap specs_;
  bool inferred_ = false;
};

std::vector<NDArray> NodeByNode::run(std::span<const NDArray> inputs) { return Run(*this, inputs).outputs(); }

// ---------------------------------------------------------------------------------------------------------- functions
Ref<GraphFunction> NodeByNode::function_of(const Node& node, int number, const std::function<GraphDefinition()>& make,
                                           bool by_node) {
  const std::lock_guard lock(mutex_);
  Ref<GraphFunction>& known = functions_[{&node, number}];
  if (!known) {
    CompileOptions options = options_;
    options.name = node.name;
    options.by_node = by_node;
    known = make_ref<GraphFunction>(make(), std::move(options));
  }
  return known;
}

Ref<GraphFunction> NodeByNode::body_of(const Node& node, size_t body) {
  // A plan serves one shape: variables that change theirs would need a new one in each iteration.
  const bool by_node = control_kind(node) == ControlKind::kWhileLoop && !loop_of(node).free_axes.empty();
  return function_of(
      node, static_cast<int>(body),
      [&] {
        GraphDefinition definition{node.subgraphs[body]->inputs, node.subgraphs[body]->outputs};
        if (control_kind(node) == ControlKind::kCond) {  // a branch is given what it reads only
          const std::vector<bool> read = read_inputs(*node.subgraphs[body]);
          size_t k = 0;
          std::erase_if(definition.inputs, [&](const NodePtr&) { return !read[k++]; });
        }
        return definition;
      },
      by_node);
}

// A loop or branch alone, compiled: outputs padded to the limit of iterations.
Ref<GraphFunction> NodeByNode::whole(const Node& node) {
  return function_of(node, kWholeNode, [&] {
    ParamsPtr params = node.params;
    if (control_kind(node) == ControlKind::kWhileLoop && loop_of(node).exact) {
      LoopSpec padded = loop_of(node);
      padded.exact = false;
      params = boxed(std::move(padded));
    }
    return definition_of_copy(node, std::move(params), static_cast<int>(node.inputs.size()));
  });
}

}  // namespace hybridnet
