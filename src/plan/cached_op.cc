#include <algorithm>
#include <unordered_set>

#include "hybridnet/plan.h"
#include "plan/graph_function.h"

namespace hybridnet {

struct CachedOp::Impl {
  Symbol symbol;
  Ref<GraphFunction> function;
};

namespace {

CompileOptions options_from(const CachedOpConfig& config) {
  CompileOptions options;
  options.name = config.name;
  options.query = chosen_query(config.passes);
  options.remat = RematPolicy::parse(config.remat);
  options.keep_arena = config.static_alloc;
  return options;
}

void check(const GraphDefinition& definition, const std::string& name) {
  std::unordered_set<const Node*> inputs;
  for (const NodePtr& input : definition.inputs) {
    if (!inputs.insert(input.get()).second)
      throw ValueError({.op = name, .input = input->name, .message = "the variable is an input twice"});
  }
  for (const Node* node : topological_order(definition.roots())) {
    if (node->is_variable() && !node->constant && inputs.count(node) == 0)
      throw ValueError({.op = name,
                        .input = node->name,
                        .message = "the graph reads a variable that is no input",
                        .fix = "give it as an input, or a value by mx.shared"});
  }
  std::vector<bool> updated(definition.inputs.size());
  for (const Graph::Writeback& update : definition.updates) {
    const auto input = static_cast<size_t>(update.input);
    if (input >= updated.size()) throw IndexError({.op = name, .message = "an update of an input that there is not"});
    if (updated[input])
      throw ValueError({.op = name, .input = definition.inputs[input]->name, .message = "it has two updates"});
    updated[input] = true;
  }
}

// Inputs that hold a value (shared variables) become variables without one: each call gives their value, and no rewrite
// may treat it as a constant.
void forget_values(GraphDefinition& definition) {
  const auto has_value = [](const NodePtr& input) { return static_cast<bool>(input->constant); };
  if (std::none_of(definition.inputs.begin(), definition.inputs.end(), has_value)) return;
  std::vector<Value> variables;
  for (NodePtr& input : definition.inputs) {
    const NodePtr variable = has_value(input) ? make_variable(input->name) : input;
    if (has_value(input)) {
      variable->attrs = input->attrs;
      variable->where = input->where;
      variable->block = input->block;
    }
    variables.push_back(to_value(NodeEntry{variable, 0}));
  }
  const GraphDefinition all{definition.inputs, definition.roots()};
  const std::vector<Value> roots = all.applied_to(variables);
  for (size_t i = 0; i < definition.inputs.size(); ++i) definition.inputs[i] = to_entry(variables[i]).node;
  const size_t num_outputs = definition.outputs.size();
  for (size_t i = 0; i < num_outputs; ++i) definition.outputs[i] = to_entry(roots[i]);
  for (size_t i = num_outputs; i < roots.size(); ++i) definition.updates[i - num_outputs].value = to_entry(roots[i]);
}

}  // namespace

CachedOp::CachedOp(Symbol symbol, CachedOpConfig config) : impl_(std::make_unique<Impl>()) {
  GraphDefinition definition;
  definition.inputs = symbol.list_inputs();
  definition.outputs = symbol.outputs;
  impl_->function = make_ref<GraphFunction>(std::move(definition), options_from(config));
  impl_->symbol = std::move(symbol);
}

CachedOp::CachedOp(FunctionGraph graph, CachedOpConfig config) : impl_(std::make_unique<Impl>()) {
  GraphDefinition definition;
  definition.inputs = std::move(graph.inputs);
  definition.outputs = std::move(graph.outputs);
  for (GraphUpdate& update : graph.updates) definition.updates.push_back({update.input, std::move(update.value)});
  definition.atomic = graph.atomic;
  definition.checked = true;
  definition.donated = std::move(graph.donated);
  definition.borrowed = std::move(graph.borrowed);
  check(definition, config.name);
  forget_values(definition);
  impl_->symbol.outputs = definition.outputs;
  impl_->function = make_ref<GraphFunction>(std::move(definition), options_from(config));
}

CachedOp::CachedOp() : impl_(std::make_unique<Impl>()) {}
CachedOp::~CachedOp() = default;

Ref<CachedOp> CachedOp::copy(bool share_memory, bool delete_updates, const std::string& name) const {
  Ref<CachedOp> made(new CachedOp());
  made->impl_->symbol = impl_->symbol;
  made->impl_->function = impl_->function->copy(share_memory, delete_updates, name);
  return made;
}

size_t CachedOp::num_kernels() const {
  const Ref<KernelStore>& kernels = impl_->function->options().kernels;
  return kernels ? kernels->num_linked() : 0;
}

std::vector<NDArray> CachedOp::call(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                    std::optional<RngKey> key) {
  return impl_->function->call(inputs, out, key);
}
bool CachedOp::is_random() const { return impl_->function->uses_random(); }

const Symbol& CachedOp::symbol() const { return impl_->symbol; }
size_t CachedOp::num_plans() const { return impl_->function->counts().plans; }
size_t CachedOp::num_linked() const { return impl_->function->counts().linked; }
size_t CachedOp::num_layouts() const { return impl_->function->counts().layouts; }
size_t CachedOp::num_rewritten() const { return impl_->function->counts().rewritten; }
bool CachedOp::is_torn() const { return impl_->function->is_torn(); }
void CachedOp::forget_torn() { impl_->function->forget_torn(); }
std::string CachedOp::summary() const { return impl_->function->summary(); }
std::string CachedOp::plan_text() const { return impl_->function->plan_text(); }
std::vector<std::string> CachedOp::fired_rewrites() const { return impl_->function->fired_rewrites(); }
std::string CachedOp::graph_text() const { return impl_->function->graph_text(); }

}  // namespace hybridnet
