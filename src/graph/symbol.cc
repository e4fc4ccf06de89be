#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graph/control/closed_body.h"
#include "graph/control/control_flow.h"
#include "graph/fused_form.h"
#include "graph/node_table.h"
#include "graph/output_names.h"
#include "op/attr_text.h"

namespace hybridnet {
namespace {

// Returns the variables that feed an auxiliary input of an operator.
std::unordered_set<const Node*> auxiliary_nodes(const std::vector<Node*>& order) {
  std::unordered_set<const Node*> result;
  for (const Node* node : order) {
    if (node->is_variable()) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (node->inputs[i].node->is_variable() && is_auxiliary_input(*node, i))
        result.insert(node->inputs[i].node.get());
  }
  return result;
}

// Variables with a value (constants of the graph) are not inputs.
bool is_input(const Node* node) { return node->is_variable() && !node->constant; }

// The topological order of the graph in its file form, in which quantized layers read their inputs in another order.
std::vector<Node*> order_in_file(const std::vector<NodeEntry>& outputs) {
  check_leaks(outputs);
  std::vector<Node*> order = topological_order(outputs);
  std::unordered_map<const Node*, std::vector<NodeEntry>> reordered;
  for (const Node* node : order)
    if (is_layer_of_bytes(*node)) reordered[node] = fused_layer(*node)->inputs;
  if (reordered.empty()) return order;
  order.clear();
  NodeTable<bool> seen;
  std::vector<std::pair<Node*, size_t>> stack;
  const auto enter = [&](Node* node) {
    if (seen.insert(node, true).second) stack.emplace_back(node, 0);
  };
  for (const NodeEntry& output : outputs) {
    enter(output.node.get());
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const auto other = reordered.find(node);
      const std::vector<NodeEntry>& inputs = other != reordered.end() ? other->second : node->inputs;
      if (next < inputs.size()) {
        enter(inputs[next++].node.get());
        continue;
      }
      order.push_back(node);
      stack.pop_back();
    }
  }
  return order;
}

std::vector<std::string> names_of(const Symbol& symbol, bool auxiliary) {
  const std::vector<Node*> order = order_in_file(symbol.outputs);
  const auto aux = auxiliary_nodes(order);
  std::vector<std::string> names;
  for (const Node* node : order)
    if (is_input(node) && aux.count(node) == (auxiliary ? 1u : 0u)) names.push_back(node->name);
  return names;
}

// Overwrites the declared spec of a variable with the caller's; sizes that the caller leaves unknown stay as declared.
void learn(TensorSpec& spec, const TensorSpec& known) {
  if (known.dtype != DType::kUnknown) spec.dtype = known.dtype;
  if (!known.shape.rank_known()) return;
  if (!spec.shape.rank_known() || spec.shape.ndim() != known.shape.ndim()) {
    spec.shape = known.shape;
    return;
  }
  for (int i = 0; i < known.shape.ndim(); ++i)
    if (known.shape[i] != kUnknownDim) spec.shape[i] = known.shape[i];
}

}  // namespace

TensorSpec declared_spec(const Node& variable) {
  TensorSpec spec;
  if (auto it = variable.attrs.find("__shape__"); it != variable.attrs.end()) {
    AttrValue list;
    if (parse_list(it->second, &list)) {
      Shape shape = Shape::scalar();
      for (const AttrValue& item : std::get<AttrValue::List>(list.value)) {
        const int64_t* dim = std::get_if<int64_t>(&item.value);
        shape.push_back(!dim || *dim < 0 || (*dim == 0 && !is_np_shape()) ? kUnknownDim : *dim);
      }
      if (shape.ndim() > 0 || is_np_shape()) spec.shape = shape;
    }
  }
  if (auto it = variable.attrs.find("__dtype__"); it != variable.attrs.end()) {
    int64_t code;
    if (parse_int(it->second, &code) && code >= 0 && dtype_valid_code(static_cast<int>(code)))
      spec.dtype = static_cast<DType>(code);
  }
  return spec;
}

std::vector<NodePtr> Symbol::list_inputs() const {
  std::vector<NodePtr> result;
  for (Node* node : order_in_file(outputs))
    if (is_input(node)) result.emplace_back(node);
  return result;
}

std::vector<std::string> Symbol::list_arguments() const { return names_of(*this, false); }
std::vector<std::string> Symbol::list_auxiliary_states() const { return names_of(*this, true); }

std::vector<std::string> Symbol::list_outputs() const {
  std::vector<std::string> names;
  for (const NodeEntry& e : outputs) names.push_back(output_name_of(e));
  return names;
}

Symbol Symbol::internals() const {
  Symbol all;
  for (Node* node : order_in_file(outputs))
    for (int i = 0; i < node->num_visible_outputs(); ++i)
      all.outputs.push_back({NodePtr(node), static_cast<uint32_t>(i)});
  return all;
}

Symbol Symbol::children() const {
  Symbol result;
  std::set<const Node*> seen;
  for (const NodeEntry& e : outputs) {
    if (!seen.insert(e.node.get()).second) continue;
    for (const NodeEntry& in : e.node->inputs) result.outputs.push_back(in);
  }
  return result;
}

namespace {

// Sets the dtype of a variable to the first of float32, int32, int64, uint8, bool that all its readers accept.
void fill_dtype(const std::vector<NodeEntry>& outputs, const NodeEntry& variable, bool train, SpecMap* specs) {
  for (const DType candidate : {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    SpecMap tried = *specs;
    tried[variable].dtype = candidate;
    try {
      infer_specs(outputs, tried, train);
    } catch (const DTypeError&) {
      if (candidate == DType::kBool) throw;
      continue;
    }
    *specs = std::move(tried);
    return;
  }
}

// Undetermined dtypes become float32, the default of the API; if an operator refuses float32, see fill_dtype.
void fill_undetermined_dtypes(const std::vector<NodeEntry>& outputs, const std::vector<Node*>& order, bool train,
                              SpecMap* specs) {
  std::vector<NodeEntry> unknown;
  for (Node* node : order)
    if (node->is_variable() && (*specs)[{NodePtr(node), 0}].dtype == DType::kUnknown)
      unknown.push_back({NodePtr(node), 0});
  if (unknown.empty()) return;
  SpecMap all_floating = *specs;
  for (const NodeEntry& variable : unknown) all_floating[variable].dtype = DType::kFloat32;
  try {
    infer_specs(outputs, all_floating, train);
    *specs = std::move(all_floating);
  } catch (const DTypeError&) {
    for (const NodeEntry& variable : unknown)
      if ((*specs)[variable].dtype == DType::kUnknown) fill_dtype(outputs, variable, train, specs);
  }
}

}  // namespace

Symbol::Specs Symbol::infer(const std::map<std::string, TensorSpec>& known, bool partial, bool train) const {
  check_leaks(outputs);
  const std::vector<Node*> order = topological_order(outputs);
  const auto aux = auxiliary_nodes(order);
  SpecMap specs;
  for (Node* node : order) {
    if (!node->is_variable()) continue;
    const NodeEntry entry{NodePtr(node), 0};
    TensorSpec& spec = specs[entry];
    spec = declared_spec(*node);
    if (auto it = known.find(node->name); it != known.end()) learn(spec, it->second);
  }
  infer_specs(outputs, specs, train);
  if (!partial) fill_undetermined_dtypes(outputs, order, train, &specs);

  Specs result;
  result.complete = true;
  std::string missing;
  auto collect = [&](const NodeEntry& e, std::vector<TensorSpec>* list) {
    const TensorSpec spec = specs.has(e) ? specs.at(e) : TensorSpec{};
    if (!spec.known()) {
      result.complete = false;
      missing += (missing.empty() ? "" : ", ") + (e.node->is_variable() ? e.node->name : output_name_of(e)) + ": " +
                 spec.str();
    }
    list->push_back(spec);
  };
  for (Node* node : order)
    if (is_input(node)) collect({NodePtr(node), 0}, aux.count(node) ? &result.auxiliaries : &result.arguments);
  for (const NodeEntry& e : outputs) collect(e, &result.outputs);
  if (!result.complete && !partial) {
    throw ShapeError({.message = "the shapes given do not determine all others",
                      .because = "these are unknown: " + missing,
                      .fix = "give the shapes of more inputs, or use infer_shape_partial"});
  }
  return result;
}

}  // namespace hybridnet
