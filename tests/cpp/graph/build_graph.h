// Short functions for tests that make symbols, graphs and arrays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "graph/control/control_flow.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "hybridnet/pass.h"
#include "hybridnet/runtime.h"

namespace hybridnet::graph_testing {

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

inline ParamsPtr parse_params(const Op& op, TextAttrs attrs, size_t num_inputs) {
  if (op.variadic && !op.count_param.empty()) attrs.emplace_back(op.count_param, std::to_string(num_inputs));
  return op.schema->parse(attrs, op.name, false);
}

inline NodeEntry var(const std::string& name) { return {make_variable(name), 0}; }

inline NodeEntry use(const std::string& name, std::vector<NodeEntry> inputs, TextAttrs attrs = {}) {
  static int counter = 0;
  const Op& op = Runtime::get().ops().at(name);
  ParamsPtr params = parse_params(op, std::move(attrs), inputs.size());
  return {make_node(op, name + std::to_string(counter++), std::move(params), std::move(inputs)), 0};
}

// Makes a _foreach: input k of the node feeds input k of the body. Fills in the numbers of inputs and outputs.
inline NodeEntry use_foreach(LoopSpec spec, std::vector<NodeEntry> inputs, const std::vector<NodeEntry>& body_inputs,
                             std::vector<NodeEntry> body_outputs) {
  auto body = make_ref<Subgraph>();
  for (const NodeEntry& input : body_inputs) body->inputs.push_back(input.node);
  body->outputs = std::move(body_outputs);
  spec.num_args = static_cast<int32_t>(inputs.size());
  spec.num_out = static_cast<int32_t>(body->outputs.size()) - spec.num_carry;
  const NodePtr node =
      make_node(Runtime::get().ops().at("_foreach"), "loop", boxed(std::move(spec)), std::move(inputs));
  node->subgraphs = {body};
  return {node, 0};
}

inline NodeEntry output(const NodeEntry& entry, uint32_t index) { return {entry.node, index}; }

inline TensorSpec float32(std::initializer_list<int64_t> dims) { return {Shape(dims), DType::kFloat32}; }

// Makes a Graph with these inputs and outputs.
inline Graph make_graph(const std::vector<NodeEntry>& inputs, const std::vector<TensorSpec>& specs,
                        const std::vector<NodeEntry>& outputs, bool train = false) {
  Runtime::get();
  SpecMap known;
  EntryMap map;
  Graph graph(train);
  for (size_t i = 0; i < inputs.size(); ++i) {
    known[inputs[i]] = specs[i];
    map[inputs[i]] = {graph.add_input(inputs[i].node->name, specs[i]), 0};
  }
  EXPECT_TRUE(infer_specs(outputs, known, train));
  for (const NodeEntry& clone : graph.import(outputs, &known, map)) graph.add_output(clone);
  return graph;
}

// The pipeline of the process: its patterns name operators, which Runtime declares.
inline std::shared_ptr<const Pipeline> current_pipeline() {
  Runtime::get();
  return RewriteDatabase::current();
}

inline int count_ops(const Graph& graph, const std::string& name) {
  int count = 0;
  for (const Node* node : graph.order()) count += node->op && node->op->name == name ? 1 : 0;
  return count;
}

inline NDArray make_array(const Shape& shape, const std::vector<float>& values) {
  Runtime::get();
  NDArray array = NDArray::empty(shape, DType::kFloat32);
  array.copy_from(values.data());
  return array;
}

// Returns values in [-1, 1) that depend only on seed and position.
inline NDArray random_array(const Shape& shape, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(shape.size()));
  uint32_t state = seed * 2654435761u + 12345u;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return make_array(shape, values);
}

inline std::vector<float> values_of(const NDArray& array) {
  std::vector<float> values(static_cast<size_t>(array.size()));
  array.copy_to(values.data());
  return values;
}

inline void expect_close(const NDArray& a, const NDArray& b, double tolerance = 1e-5) {
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  ASSERT_EQ(a.spec().str(), b.spec().str());
  const std::vector<float> x = values_of(a), y = values_of(b);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], y[i], tolerance * (1.0 + std::fabs(y[i]))) << "at element " << i;
  }
}

// Invokes the symbol's nodes one by one.
inline std::vector<NDArray> run_imperatively(const std::vector<NodeEntry>& inputs, const std::vector<NDArray>& arrays,
                                             const std::vector<NodeEntry>& outputs) {
  std::unordered_map<const Node*, std::vector<NDArray>> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[inputs[i].node.get()] = {arrays[i]};
  for (Node* node : topological_order(outputs)) {
    if (values.count(node) != 0) continue;
    std::vector<NDArray> arguments;
    for (const NodeEntry& input : node->inputs) arguments.push_back(values.at(input.node.get())[input.index]);
    values[node] = invoke(*node->op, node->params, arguments);
  }
  std::vector<NDArray> results;
  for (const NodeEntry& entry : outputs) results.push_back(values.at(entry.node.get())[entry.index]);
  return results;
}

// Turns recording (and training) on for a scope.
struct Record {
  AutogradState before = autograd_state();
  explicit Record(bool training = true) { autograd_state() = {true, training}; }
  ~Record() { autograd_state() = before; }
};

}  // namespace hybridnet::graph_testing
