#include "plan/compilation.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "graph/control/input_use.h"
#include "graph/control/unequal_branches.h"
#include "hybridnet/env.h"
#include "ops/index/row_gradient.h"
#include "passes/loops/commit_states.h"

namespace hybridnet {
namespace {

const OpRef kWriteState{"_write_state"};

[[noreturn]] void throw_unknown(const Node& node, uint32_t index, const TensorSpec& spec) {
  ErrorFields fields;
  fields.op = node.op ? node.op->name : "";
  fields.node = node.name;
  fields.block = node.block;
  fields.where = node.where;
  fields.message = (node.is_variable() ? "the spec of variable '" + node.name + "'"
                                       : "the spec of output " + std::to_string(index)) +
                   " does not follow from the inputs: " + spec.str();
  fields.fix = "give its shape when the block or variable is made";
  throw ShapeError(std::move(fields));
}

// Makes a Graph of the user's graph: cloned, with specs, states as write-backs, and a stream number on every random
// node.
class GraphMaker {
 public:
  GraphMaker(const GraphDefinition& definition, const CallSignature& signature)
      : definition_(definition), signature_(signature), graph_(signature.train) {}

  Graph run() {
    SpecMap specs;
    infer(specs);
    EntryMap map;
    for (size_t i = 0; i < definition_.inputs.size(); ++i) {
      const NodePtr& variable = definition_.inputs[i];
      map[{variable, 0}] = {graph_.add_input(variable->name, signature_.inputs[i]), 0};
    }
    const std::vector<NodeEntry> clones = graph_.import(definition_.roots(), &specs, map);
    const auto first_value = clones.begin() + static_cast<std::ptrdiff_t>(definition_.outputs.size());
    for (auto clone = clones.begin(); clone != first_value; ++clone) graph_.add_output(*clone);
    number_random_nodes(graph_);
    if (definition_.commits_writebacks) {
      check_writers(definition_, signature_.train);
      pass_on_written_values([this](const Node& write) { return is_donated(write.inputs[2]); });
      commit_states(graph_);
      pass_on_written_values([](const Node&) { return true; });
    }
    for (size_t i = 0; i < definition_.updates.size(); ++i)
      add_update(definition_.updates[i].input, first_value[static_cast<std::ptrdiff_t>(i)]);
    return std::move(graph_);
  }

 private:
  // True for an input whose array has no values after the call: a write to it is only a value in the graph.
  bool is_donated(const NodeEntry& state) const {
    const int input = graph_.input_index(state.node.get());
    return input >= 0 && !definition_.donated.empty() && definition_.donated[static_cast<size_t>(input)] != 0;
  }

  // Removes writes of new values: plans make them by themselves.
  template <typename Chosen>
  void pass_on_written_values(const Chosen& chosen) {
    std::vector<NodePtr> writes;
    for (Node* node : graph_.order())
      if (node->op == &kWriteState.op() && chosen(*node)) writes.emplace_back(node);
    for (const NodePtr& write : writes)
      for (uint32_t i = 0; i < 2; ++i)
        if (graph_.contains(write.get())) graph_.replace({write, i}, write->inputs[i]);
  }

  void add_update(int input, const NodeEntry& value) {
    const Node& variable = *definition_.inputs[static_cast<size_t>(input)];
    const auto is_its = [&](const Graph::Writeback& writeback) { return writeback.input == input; };
    if (std::any_of(graph_.writebacks().begin(), graph_.writebacks().end(), is_its)) throw_written_twice(variable.name);
    const TensorSpec &held = signature_.inputs[static_cast<size_t>(input)], &given = graph_.spec(value);
    if (!(held == given)) {
      ErrorFields fields{.input = variable.name,
                         .expected = "an update of " + held.str() + ", as the variable holds",
                         .given = given.str(),
                         .fix = held.dtype == given.dtype ? "reshape the new value" : "cast the new value"};
      if (held.dtype == given.dtype) throw ShapeError(std::move(fields));
      throw DTypeError(std::move(fields));
    }
    graph_.add_writeback(input, value);
  }

  void infer(SpecMap& specs) {
    for (size_t i = 0; i < definition_.inputs.size(); ++i) specs[{definition_.inputs[i], 0}] = signature_.inputs[i];
    const std::vector<NodeEntry> roots = definition_.roots();
    const bool is_complete = infer_specs(roots, specs, signature_.train);
    std::set<const Node*> unequal = unequal_branches(roots, specs, signature_.train);
    if (!unequal.empty()) throw UnequalBranchesError(std::move(unequal));
    if (is_complete) return;
    for (Node* node : topological_order(roots)) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        const NodeEntry entry{NodePtr(node), static_cast<uint32_t>(i)};
        if (!specs.at(entry).known()) throw_unknown(*node, entry.index, specs.at(entry));
      }
    }
  }

  const GraphDefinition& definition_;
  const CallSignature& signature_;
  Graph graph_;
};

std::vector<int> wanted_inputs(const CallSignature& signature) {
  std::vector<int> wanted;
  for (size_t i = 0; i < signature.wants.size(); ++i) {
    if (signature.wants[i]) wanted.push_back(static_cast<int>(i));
  }
  return wanted;
}

// add_gradients() for the heads of a signature.
Gradients add_gradients_at(Graph& graph, const CallSignature& signature, const std::vector<int>& wanted,
                           std::vector<AskedRule>* asked = nullptr) {
  if (signature.heads.empty()) return add_gradients(graph, wanted, nullptr, asked);
  const std::vector<bool> heads(signature.heads.begin(), signature.heads.end());
  return add_gradients(graph, wanted, &heads, asked);
}

std::vector<int> outputs_with_heads(const Gradients& gradients) {
  std::vector<int> outputs;
  for (size_t i = 0; i < gradients.heads.size(); ++i) {
    if (gradients.heads[i] >= 0) outputs.push_back(static_cast<int>(i));
  }
  return outputs;
}

// Returns a scope for rewriting with these options, with the observer and the pipeline of the scope around it.
PipelineScope scope_of(const CompileOptions& options, PassReport* report,
                       const std::vector<std::string>& without = {}) {
  return PipelineScope({.query = QueryScope::applied_to(options.query).excluding(without),
                        .report = report,
                        .observer = PipelineScope::current().observer,
                        .pipeline = PipelineScope::current().pipeline});
}

// Rewrites for the kernels of CPUs, which GPUs do without. The operator that attention becomes has no form for GPUs:
// its products and softmax do, and so no cache is copied to the CPU.
std::vector<std::string> left_out(Device device) {
  if (device.type != DeviceType::kGPU) return {};
  return {"channels_last", "attention", "ordered_caches"};
}

// Each output has memory of its own, even if it is another output, a view of one or an input: the caller may write to
// each.
std::vector<int> all_apart(size_t num_outputs) {
  std::vector<int> first(num_outputs);
  std::iota(first.begin(), first.end(), 0);
  return first;
}

Ref<Plan> link_plan(const Graph& graph, const Plan::Options& options, const Ref<Plan::Linked>& known) {
  if (known)
    if (Ref<Plan> plan = Plan::lay_out(graph, options, known)) return plan;
  return Plan::compile(graph, options);
}

// Finds the nodes that sum rows into zeros. Returns false if the gradient is not made of these alone.
bool find_row_terms(const NodeEntry& gradient, std::vector<NodePtr>* terms) {
  static const OpRef kRows{"_backward_take"}, kAdd{"elemwise_add"};
  const Node& node = *gradient.node;
  if (node.op == &kAdd.op()) return find_row_terms(node.inputs[0], terms) && find_row_terms(node.inputs[1], terms);
  if (node.op != &kRows.op() || node.params->as<ops::TakeGradParams>().axis != 0) return false;
  terms->push_back(gradient.node);
  return true;
}

// Adds, instead of a gradient that is zero except for some rows, the rows and their indices as outputs.
bool add_row_outputs(RewrittenGraphs& call, Graph& joint, const NodeEntry& gradient, size_t input) {
  std::vector<NodePtr> terms;
  if (!find_row_terms(gradient, &terms)) return false;
  for (const NodePtr& term : terms) {
    joint.add_output(term->inputs[0]);
    joint.add_output(term->inputs[1]);
    call.rows_of_input[input].push_back(
        {call.num_gradients, call.num_gradients + 1, term->params->as<ops::TakeGradParams>().mode});
    call.num_gradients += 2;
  }
  return true;
}

// Adds the gradients of the wanted inputs, as outputs.
Gradients differentiate(RewrittenGraphs& call, Graph& joint, const CallSignature& signature,
                        const std::vector<int>& wanted, std::vector<AskedRule>* asked = nullptr) {
  Gradients gradients = add_gradients_at(joint, signature, wanted, asked);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const NodeEntry& gradient = gradients.of_inputs[i];
    const size_t input = static_cast<size_t>(wanted[i]);
    if (!gradient.node) continue;
    if (signature.wants[input] == kGradientByRows && add_row_outputs(call, joint, gradient, input)) continue;
    joint.add_output(gradient);
    call.gradient_of_input[input] = call.num_gradients++;
  }
  return gradients;
}

// Bodies of loops are rewritten before it is known which values the graph around them keeps. Their cheap values are
// kept if a limit can be reached without making them again.
enum class BodyValues : int8_t { kKept, kMadeAgain };

RematScope::Settings settings_of_bodies(const CompileOptions& options, BodyValues values) {
  if (options.remat_policy.kind != RematPolicy::Kind::kBytes) return {.policy = options.remat_policy};
  if (values == BodyValues::kKept) return {.policy = {.kind = RematPolicy::Kind::kAuto}};
  return {.policy = {.kind = RematPolicy::Kind::kBytes, .bytes = 0}};
}

struct UnreachedLimit : ParamError {
  using ParamError::ParamError;
};

// Rewrites the joint graph, with the settings that `remat` needs.
void rewrite_joint(Graph& joint, Stages stages, const CompileOptions& options, RematScope::Settings settings) {
  settings.policy = options.remat_policy;
  const RematScope scope(std::move(settings));
  run_pipeline(joint, stages);
  const bool has_limit = options.remat_policy.kind == RematPolicy::Kind::kBytes && scope.result.ran;
  if (!has_limit || scope.result.after <= options.remat_policy.bytes) return;
  throw UnreachedLimit(
      {.op = options.name,
       .input = "remat",
       .expected = "a number of bytes that can be reached, " + std::to_string(scope.result.after) + " or more",
       .given = std::to_string(options.remat_policy.bytes),
       .because = "the other values cannot be computed again from inputs and parameters",
       .fix = "allow more bytes, use smaller batches, or give loops a checkpoint="});
}

// Returns which inputs the backward plan may read although the gradient does not: parameters. The caller may overwrite
// data before backward() is called, and the forward plan overwrites states.
std::vector<bool> readable_in_backward(const Graph& joint, const CallSignature& signature) {
  std::vector<bool> readable(joint.inputs().size());
  for (size_t i = 0; i < signature.wants.size(); ++i) readable[i] = signature.wants[i] != kNoGradient;
  for (const Graph::Writeback& writeback : joint.writebacks()) readable[static_cast<size_t>(writeback.input)] = false;
  return readable;
}

void rewrite_with_gradient(RewrittenGraphs& call, Graph joint, const CallSignature& signature,
                           const std::vector<int>& wanted, const CompileOptions& options, const JointObserver& observe,
                           BodyValues values) {
  const int num_inputs = static_cast<int>(joint.inputs().size());
  const int num_outputs = static_cast<int>(joint.outputs().size());
  const Gradients gradients = [&] {
    const RematScope of_bodies(settings_of_bodies(options, values));
    return differentiate(call, joint, signature, wanted);
  }();
  if (observe) observe(joint);
  rewrite_joint(joint, kJointStages, options, {.is_cut = true, .readable = readable_in_backward(joint, signature)});
  SplitGraph split = split_gradient(joint, num_inputs, num_outputs);
  run_pipeline(split.forward, kPartStages);
  // Values pass from plan to plan in the format that the forward plan has given them.
  for (size_t i = 0; i < split.sources.size(); ++i) {
    const BackwardInput& source = split.sources[i];
    if (source.kind != BackwardInput::Kind::kResidual) continue;
    const NodeEntry made = split.forward.outputs()[static_cast<size_t>(num_outputs + source.index)];
    split.backward.set_format({split.backward.inputs()[i], 0}, split.forward.format(made));
  }
  run_pipeline(split.backward, kPartStages);
  call.forward = std::move(split.forward);
  call.backward = std::move(split.backward);
  call.num_residuals = split.num_residuals;
  call.sources = std::move(split.sources);
  call.has_gradient = gradients.connected;
  const std::vector<int> with_heads = outputs_with_heads(gradients);
  for (BackwardInput& source : call.sources) {
    if (source.kind == BackwardInput::Kind::kHead) source.index = with_heads[static_cast<size_t>(source.index)];
  }
}

}  // namespace

std::vector<NodeEntry> GraphDefinition::roots() const {
  std::vector<NodeEntry> all = outputs;
  for (const Graph::Writeback& update : updates) all.push_back(update.value);
  return all;
}

std::vector<Value> GraphDefinition::applied_to(std::span<const Value> values) const {
  std::unordered_map<const Node*, NodeEntry> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) leaves[inputs[i].get()] = to_entry(values[i]);
  std::unordered_map<const Node*, NodePtr> copies;
  const auto mapped = [&](const NodeEntry& e) -> NodeEntry {
    if (const auto leaf = leaves.find(e.node.get()); leaf != leaves.end()) return leaf->second;
    return {copies.at(e.node.get()), e.index};
  };
  for (Node* node : topological_order(outputs)) {
    if (leaves.count(node) != 0) continue;
    std::vector<NodeEntry> read;
    for (const NodeEntry& input : node->inputs) read.push_back(mapped(input));
    copies[node] = copy_of(*node, std::move(read));
  }
  std::vector<Value> result;
  for (const NodeEntry& output : outputs) result.push_back(to_value(mapped(output)));
  return result;
}

Query chosen_query(const std::string& passes) {
  const std::string& everywhere = environment().passes;
  Query query = Query::parse(passes.empty() ? everywhere : passes);
  RewriteDatabase::current()->check(query, passes.empty() ? "HYBRIDNET_PASSES" : "passes");
  if (passes.empty() || everywhere.empty()) return query;
  const Query excluded = Query::parse(everywhere);
  RewriteDatabase::current()->check(excluded, "HYBRIDNET_PASSES");
  return query.excluding(excluded.exclude);
}

int64_t Compilation::held_bytes() const {
  const size_t own = sizeof(Compilation) + sources.size() * sizeof(BackwardInput) +
                     signature.inputs.size() * (sizeof(TensorSpec) + sizeof(int));
  return static_cast<int64_t>(own) + (forward ? forward->held_bytes() : 0) +
         (awake ? awake->held_bytes() + awake->linked()->held_bytes() : 0) + (backward ? backward->held_bytes() : 0);
}

void add_gradients_of_call(Graph& graph, const CallSignature& signature, const CompileOptions& options,
                           std::vector<AskedRule>* asked) {
  const PipelineScope scope = scope_of(options, nullptr);  // for bodies
  RewrittenGraphs ignored;
  ignored.gradient_of_input.resize(signature.inputs.size());
  ignored.rows_of_input.resize(signature.inputs.size());
  expand_gradient_nodes(graph, asked);
  const std::vector<int> wanted = wanted_inputs(signature);
  if (!wanted.empty()) differentiate(ignored, graph, signature, wanted, asked);
}

Graph copy_of(const Graph& graph, bool states_as_outputs, EntryMap* clones_of) {
  Graph copy(graph.train());
  EntryMap map;
  for (const NodePtr& input : graph.inputs()) {
    const NodeEntry entry{input, 0};
    map[entry] = {copy.add_input(input->name, input->specs[0], graph.format(entry)), 0};
  }
  std::vector<NodeEntry> wanted = graph.outputs();
  for (const Graph::Writeback& writeback : graph.writebacks()) wanted.push_back(writeback.value);
  const std::vector<NodeEntry> clones = copy.import(graph, wanted, map);
  const size_t num_outputs = graph.outputs().size();
  for (size_t i = 0; i < num_outputs; ++i) copy.add_output(clones[i]);
  for (size_t i = num_outputs; i < clones.size(); ++i) {
    if (states_as_outputs)
      copy.add_output(clones[i]);
    else
      copy.add_writeback(graph.writebacks()[i - num_outputs].input, clones[i]);
  }
  if (clones_of) *clones_of = std::move(map);
  return copy;
}

namespace {

RewrittenGraphs rewrite_once(const GraphDefinition& definition, const CallSignature& signature,
                             const CompileOptions& options, bool keep_undifferentiated, const JointObserver& observe,
                             BodyValues values) {
  RewrittenGraphs call;
  call.gradient_of_input.assign(signature.inputs.size(), -1);
  call.rows_of_input.resize(signature.inputs.size());
  const PipelineScope scope = scope_of(options, &call.report, left_out(signature.device));
  Graph graph = GraphMaker(definition, signature).run();
  run_pipeline(graph, kForwardStages);
  const std::vector<int> wanted = wanted_inputs(signature);
  const bool has_gradients = has_gradient_nodes(graph);
  if (keep_undifferentiated && (has_gradients || !wanted.empty())) {
    call.undifferentiated = std::move(graph);
    graph = copy_of(call.undifferentiated);
  }
  if (has_gradients) {
    const RematScope of_bodies(settings_of_bodies(options, values));
    expand_gradient_nodes(graph);
  }
  if (!wanted.empty()) {
    rewrite_with_gradient(call, std::move(graph), signature, wanted, options, observe, values);
    return call;
  }
  if (has_gradients && observe) observe(graph);
  if (has_gradients)
    rewrite_joint(graph, kStagesBehindGradient, options, {});
  else
    run_pipeline(graph, kStagesBehindGradient);
  call.forward = std::move(graph);
  return call;
}

}  // namespace

void throw_written_twice(const std::string& input) {
  throw ValueError({.input = input,
                    .message = "it is written twice by one call",
                    .because = "an operator of the graph writes its new state there in training mode, and so does an "
                               "update",
                    .fix = "leave it out of updates, or call the function outside of training mode"});
}

void check_writers(const GraphDefinition& definition, bool train) {
  std::unordered_map<const Node*, const Node*> assigned, updated;  // by variable: a node that writes it
  for (const Node* node : topological_order(definition.outputs))
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Node* variable = node->inputs[i].node.get();
      // Other states than auxiliary ones are written by the trace with the operator's own value.
      if (!variable->is_variable() || !is_auxiliary_input(*node, i) || !writes_input(*node, i, train)) continue;
      (node->op == &kWriteState.op() ? assigned : updated)[variable] = node;
    }
  for (const auto& [variable, assignment] : assigned) {
    const auto other = updated.find(variable);
    if (other == updated.end()) continue;
    const Node& operation = *other->second;
    ErrorFields e{.op = operation.op->name, .node = operation.name, .input = variable->name};
    e.block = operation.block;
    e.message = "the state is written twice by one call, and the order of the two writes is not known";
    e.because = "the operator updates it in training mode" +
                (operation.where.known() ? " (" + operation.where.str() + ")" : std::string()) +
                ", and the program writes to it in place";
    e.fix = "write to it outside of the block, after the call";
    e.where = assignment->where;
    throw ValueError(std::move(e));
  }
}

RewrittenGraphs rewrite_graphs(const GraphDefinition& definition, const CallSignature& signature,
                               const CompileOptions& options, bool keep_undifferentiated,
                               const JointObserver& observe) {
  try {
    return rewrite_once(definition, signature, options, keep_undifferentiated, observe, BodyValues::kKept);
  } catch (const UnreachedLimit&) {
    return rewrite_once(definition, signature, options, keep_undifferentiated, observe, BodyValues::kMadeAgain);
  }
}

Ref<Compilation> link_compilation(const RewrittenGraphs& rewritten, const GraphDefinition& definition,
                                  const CallSignature& signature, const CompileOptions& options,
                                  const LinkedPlans& known) {
  const bool differentiated = !wanted_inputs(signature).empty();
  auto call = make_ref<Compilation>();
  call->signature = signature;
  call->gradient_of_input = rewritten.gradient_of_input;
  call->rows_of_input = rewritten.rows_of_input;
  call->report = rewritten.report;
  const PipelineScope scope = scope_of(options, &call->report, left_out(signature.device));
  Plan::Options forward = options.for_plan(signature.device);
  forward.num_residuals = rewritten.num_residuals;
  forward.frozen_weights = !differentiated && !signature.train;
  forward.atomic = definition.atomic;
  forward.first_of = all_apart(definition.outputs.size());
  if (!differentiated) forward.donated = definition.donated;
  call->forward = link_plan(rewritten.forward, forward, known.forward);
  call->has_gradient = rewritten.has_gradient;
  if (rewritten.num_gradients == 0) return call;
  call->backward = link_plan(rewritten.backward, options.for_plan(signature.device), known.backward);
  call->forward->make_room_for(*call->backward);
  call->sources = rewritten.sources;
  return call;
}

GradientDefinition make_gradient_definition(const GraphDefinition& definition, const CallSignature& signature,
                                            const CompileOptions& options) {
  GradientDefinition result;
  GraphDefinition stateless = definition;
  stateless.commits_writebacks = false;
  stateless.updates.clear();
  stateless.donated.clear();
  Graph graph = GraphMaker(stateless, signature).run();
  std::vector<std::string> without = left_out(signature.device);
  without.emplace_back(kLimitedOrder);
  const PipelineScope scope = scope_of(options, nullptr, without);
  run_pipeline(graph, kForwardStages);
  expand_gradient_nodes(graph);
  const std::vector<int> wanted = wanted_inputs(signature);
  const Gradients gradients = add_gradients_at(graph, signature, wanted);
  result.heads = outputs_with_heads(gradients);
  result.graph.commits_writebacks = false;
  result.graph.inputs = graph.inputs();
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!gradients.of_inputs[i].node) continue;
    result.graph.outputs.push_back(gradients.of_inputs[i]);
    result.of_inputs.push_back(wanted[i]);
  }
  return result;
}

}  // namespace hybridnet
