// Specs of loops and branches, both ways: from inputs through bodies to outputs, and from bodies back to inputs whose
// shapes were not known (parameters that are made inside a body).
#include <algorithm>
#include <atomic>
#include <charconv>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

constexpr char kStreamAttribute[] = "__rng_stream__";
constexpr int kMostRounds = 8;  // a state that feeds a state that feeds a state ...

// Adds what is known to spec; false on a contradiction.
bool unify(TensorSpec& spec, const TensorSpec& known) {
  if (known.dtype != DType::kUnknown) {
    if (spec.dtype != DType::kUnknown && spec.dtype != known.dtype) return false;
    spec.dtype = known.dtype;
  }
  if (!known.shape.rank_known()) return true;
  if (!spec.shape.rank_known()) {
    spec.shape = known.shape;
    return true;
  }
  if (spec.shape.ndim() != known.shape.ndim()) return false;
  for (int i = 0; i < known.shape.ndim(); ++i) {
    if (known.shape[i] == kUnknownDim) continue;
    if (spec.shape[i] != kUnknownDim && spec.shape[i] != known.shape[i]) return false;
    spec.shape[i] = known.shape[i];
  }
  return true;
}

TensorSpec with_rows(const TensorSpec& row, int64_t rows) {
  TensorSpec result{Shape(), row.dtype};
  if (!row.shape.rank_known()) return result;
  result.shape = Shape::scalar();
  result.shape.push_back(rows);
  for (int64_t dim : row.shape.dims()) result.shape.push_back(dim);
  return result;
}

TensorSpec without_rows(const TensorSpec& stacked) {
  TensorSpec result{Shape(), stacked.dtype};
  if (!stacked.shape.rank_known() || stacked.shape.ndim() == 0) return result;
  result.shape = Shape::scalar();
  for (int64_t dim : stacked.shape.dims().subspan(1)) result.shape.push_back(dim);
  return result;
}

std::string line_of(const Node& node) { return node.where.known() ? " (" + node.where.str() + ")" : std::string(); }

// One body under inference: specs of its inputs and outputs.
class Body {
 public:
  Body(const Node& node, size_t index, bool train) : graph_(*node.subgraphs[index]), train_(train) {}

  TensorSpec& input(size_t i) { return specs_[{graph_.inputs[i], 0}]; }
  TensorSpec output(size_t i) { return specs_[graph_.outputs[i]]; }
  size_t num_inputs() const { return graph_.inputs.size(); }
  size_t num_outputs() const { return graph_.outputs.size(); }
  // What is known of an output from outside may tell something about the inside.
  void learn_output(size_t i, const TensorSpec& known) {
    TensorSpec& spec = specs_[graph_.outputs[i]];
    TensorSpec trial = spec;
    if (unify(trial, known)) spec = trial;
  }
  void run() { infer_specs(graph_.outputs, specs_, train_); }
  const Node& maker(size_t output) const { return *graph_.outputs[output].node; }

 private:
  const Subgraph& graph_;
  const bool train_;
  SpecMap specs_;
};

void learn(TensorSpec& spec, const TensorSpec& known, const Node& node, const std::string& what) {
  TensorSpec merged = spec;
  if (!unify(merged, known)) {
    throw ShapeError({.op = node.op->name,
                      .node = node.name,
                      .input = what,
                      .expected = spec.str(),
                      .given = known.str(),
                      .where = node.where});
  }
  spec = merged;
}

[[noreturn]] void throw_state_changes(const Node& node, Body& body, size_t state, size_t output,
                                      const TensorSpec& before, const TensorSpec& after) {
  ErrorFields e;
  e.op = node.op->name;
  e.node = node.name;
  e.input = "state " + std::to_string(state);
  e.expected = before.str();
  e.given = after.str() + " from the body" + line_of(body.maker(output));
  e.because = "what an iteration returns is what the next one gets";
  e.fix = "cast or reshape what the body returns, or the initial state";
  e.where = node.where;
  if (before.dtype != after.dtype && before.dtype != DType::kUnknown) throw DTypeError(std::move(e));
  throw ShapeError(std::move(e));
}

// What holds for a state in every iteration: sizes that may change are unknown.
TensorSpec in_every_iteration(TensorSpec spec, const std::vector<bool>& free) {
  if (!spec.shape.rank_known()) return spec;
  for (size_t axis = 0; axis < free.size() && static_cast<int>(axis) < spec.shape.ndim(); ++axis)
    if (free[axis]) spec.shape[static_cast<int>(axis)] = kUnknownDim;
  return spec;
}

// States keep their specs from iteration to iteration, but for the sizes that are free. slots: input of the body per
// state; first: output of state 0.
void infer_loop_body(const Node& node, Body& body, const std::vector<int>& slots, size_t first,
                     const std::vector<std::vector<bool>>& free) {
  for (int round = 0; round < kMostRounds; ++round) {
    body.run();
    bool learnt = false;
    for (size_t s = 0; s < slots.size(); ++s) {
      TensorSpec& in = body.input(static_cast<size_t>(slots[s]));
      const TensorSpec after = in_every_iteration(body.output(first + s), free[s]);
      TensorSpec merged = in;
      if (!unify(merged, after)) throw_state_changes(node, body, s, first + s, in, after);
      if (!(merged == in)) {
        in = merged;
        learnt = true;
      }
      if (!(merged == after)) {
        const TensorSpec before = body.output(first + s);
        body.learn_output(first + s, merged);
        learnt = learnt || !(body.output(first + s) == before);
      }
    }
    if (!learnt) return;
  }
}

// ------------------------------------------------------------------------------------------------------------- foreach
int64_t rows_of(const TensorSpec& spec) {
  return spec.shape.rank_known() && spec.shape.ndim() > 0 ? spec.shape[0] : kUnknownDim;
}

void infer_foreach(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const auto& p = params_of<ForeachParams>(node);
  const std::vector<int> data = to_ints(p.in_data_locs), states = to_ints(p.in_state_locs);
  const std::vector<int> sources = body_sources(node, 0);
  const size_t num_data = data.size(), num_out_data = static_cast<size_t>(p.num_out_data);

  int64_t rows = p.length >= 0 ? p.length : kUnknownDim;
  auto see_rows = [&](const TensorSpec& spec, const std::string& what) {
    const int64_t given = rows_of(spec);
    if (given == kUnknownDim) return;
    if (rows != kUnknownDim && rows != given) {
      throw ShapeError({.op = node.op->name,
                        .node = node.name,
                        .input = what,
                        .expected = "length " + std::to_string(rows),
                        .given = spec.str(),
                        .because = "all data of a loop have one length along axis 0"});
    }
    rows = given;
  };
  for (size_t i = 0; i < num_data; ++i) {
    if (in[i].shape.rank_known() && in[i].shape.ndim() == 0) {
      throw ShapeError({.op = node.op->name,
                        .node = node.name,
                        .input = "data " + std::to_string(i),
                        .expected = "at least one axis",
                        .given = in[i].str()});
    }
    see_rows(in[i], "data " + std::to_string(i));
  }
  for (size_t i = 0; i < num_out_data; ++i) see_rows(out[i], "output " + std::to_string(i));

  Body body(node, 0, train);
  for (size_t k = 0; k < body.num_inputs(); ++k) {
    const auto source = static_cast<size_t>(sources[k]);
    body.input(k) = source < num_data ? slice_spec(in[source], p.scalar_slices) : in[source];
  }
  for (size_t i = 0; i < num_out_data; ++i) body.learn_output(i, without_rows(out[i]));
  for (size_t s = 0; s < states.size(); ++s)
    learn(body.input(static_cast<size_t>(states[s])), out[num_out_data + s], node, "state " + std::to_string(s));
  infer_loop_body(node, body, states, num_out_data, std::vector<std::vector<bool>>(states.size()));

  for (size_t k = 0; k < body.num_inputs(); ++k) {
    const auto source = static_cast<size_t>(sources[k]);
    const TensorSpec& found = body.input(k);
    if (source >= num_data) {
      learn(in[source], found, node, "input " + std::to_string(source));
    } else if (in[source].shape.rank_known() && in[source].shape.ndim() == 1) {
      learn(in[source], {Shape{rows}, found.dtype}, node, "data " + std::to_string(source));
    } else {
      learn(in[source], with_rows(found, rows), node, "data " + std::to_string(source));
    }
  }
  for (size_t i = 0; i < num_out_data; ++i)
    learn(out[i], with_rows(body.output(i), rows), node, "output " + std::to_string(i));
  for (size_t s = 0; s < states.size(); ++s)
    learn(out[num_out_data + s], body.input(static_cast<size_t>(states[s])), node, "state " + std::to_string(s));
}

// ---------------------------------------------------------------------------------------------------------- while_loop
void infer_while_loop(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const auto& p = params_of<WhileLoopParams>(node);
  const std::vector<int> cond_sources = body_sources(node, 0), sources = body_sources(node, 1);
  const std::vector<int> variables = to_ints(p.func_var_locs);
  const size_t num_out_data = static_cast<size_t>(p.num_out_data);
  const int64_t rows = p.exact || p.unbounded ? kUnknownDim : p.max_iterations;
  const std::vector<std::vector<bool>> free = free_sizes(p);

  Body condition(node, 0, train), body(node, 1, train);
  for (size_t k = 0; k < body.num_inputs(); ++k) body.input(k) = in[static_cast<size_t>(sources[k])];
  for (size_t i = 0; i < num_out_data; ++i) body.learn_output(i, without_rows(out[i]));
  for (size_t s = 0; s < variables.size(); ++s) {
    TensorSpec& slot = body.input(static_cast<size_t>(variables[s]));
    slot = in_every_iteration(slot, free[s]);
    learn(slot, in_every_iteration(out[num_out_data + s], free[s]), node, "variable " + std::to_string(s));
  }
  infer_loop_body(node, body, variables, num_out_data, free);
  for (size_t k = 0; k < body.num_inputs(); ++k)
    learn(in[static_cast<size_t>(sources[k])], body.input(k), node, "input " + std::to_string(sources[k]));

  for (size_t k = 0; k < condition.num_inputs(); ++k) {
    condition.input(k) = in[static_cast<size_t>(cond_sources[k])];
    for (size_t s = 0; s < variables.size(); ++s)
      if (sources[static_cast<size_t>(variables[s])] == cond_sources[k])
        condition.input(k) = in_every_iteration(condition.input(k), free[s]);
  }
  condition.run();
  for (size_t k = 0; k < condition.num_inputs(); ++k)
    learn(in[static_cast<size_t>(cond_sources[k])], condition.input(k), node,
          "input " + std::to_string(cond_sources[k]));
  const TensorSpec test = condition.output(0);
  if (test.shape.known() && test.shape.size() != 1) {
    throw ShapeError({.op = node.op->name,
                      .node = node.name,
                      .input = "cond",
                      .expected = "one element",
                      .given = test.str(),
                      .fix = "reduce the condition with max() (any) or min() (all)"});
  }
  for (size_t i = 0; i < num_out_data; ++i)
    learn(out[i], with_rows(body.output(i), rows), node, "output " + std::to_string(i));
  for (size_t s = 0; s < variables.size(); ++s)
    learn(out[num_out_data + s], body.input(static_cast<size_t>(variables[s])), node, "variable " + std::to_string(s));
  learn(out[num_out_data + variables.size()], {p.scalar_slices ? Shape::scalar() : Shape{1}, DType::kInt64}, node,
        "count");
}

// ---------------------------------------------------------------------------------------------------------------- cond
[[noreturn]] void throw_branches_differ(const Node& node, size_t i, Body& then_body, const TensorSpec& one,
                                        Body& else_body, const TensorSpec& other) {
  ErrorFields e;
  e.op = node.op->name;
  e.node = node.name;
  e.input = "output " + std::to_string(i);
  e.expected = one.str() + " as from the then branch" + line_of(then_body.maker(i));
  e.given = other.str() + " from the else branch" + line_of(else_body.maker(i));
  e.because = "what comes after does not know which branch was taken";
  e.fix = "cast or reshape in one of the branches";
  e.where = node.where;
  if (one.dtype != other.dtype) throw DTypeError(std::move(e));
  throw ShapeError(std::move(e));
}

// What both branches agree on; sizes that differ are unknown.
TensorSpec join(const TensorSpec& one, const TensorSpec& other) {
  TensorSpec both = one;
  if (!one.shape.rank_known() || !other.shape.rank_known()) return both;
  for (int i = 0; i < both.shape.ndim(); ++i)
    if (i >= other.shape.ndim() || both.shape[i] != other.shape[i]) both.shape[i] = kUnknownDim;
  return both;
}

void infer_cond(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const auto& p = params_of<CondParams>(node);
  const size_t common = static_cast<size_t>(p.num_outputs - p.then_extra - p.else_extra);
  auto run = [&](Body& body, size_t index) {
    const std::vector<int> sources = body_sources(node, index);
    for (size_t k = 0; k < body.num_inputs(); ++k) body.input(k) = in[static_cast<size_t>(sources[k])];
    if (index > 0 && !p.dynamic)
      for (size_t i = 0; i < common; ++i) body.learn_output(i, out[i]);
    body.run();
    for (size_t k = 0; k < body.num_inputs(); ++k)
      learn(in[static_cast<size_t>(sources[k])], body.input(k), node, "input " + std::to_string(sources[k]));
  };
  Body pred(node, 0, train), then_body(node, 1, train), else_body(node, 2, train);
  run(pred, 0);
  const TensorSpec test = pred.output(0);
  if (test.shape.known() && test.shape.size() != 1) {
    throw ShapeError({.op = node.op->name,
                      .node = node.name,
                      .input = "pred",
                      .expected = "one element",
                      .given = test.str(),
                      .fix = "reduce it with max() (any) or min() (all)"});
  }
  run(then_body, 1);
  run(else_body, 2);
  for (size_t i = 0; i < common; ++i) {
    const TensorSpec one = then_body.output(i), other = else_body.output(i);
    TensorSpec both = one;
    if (p.dynamic)
      both = join(one, other);
    else if (!unify(both, other))
      throw_branches_differ(node, i, then_body, one, else_body, other);
    learn(out[i], both, node, "output " + std::to_string(i));
  }
  const size_t then_extra = static_cast<size_t>(p.then_extra);
  for (size_t i = 0; i < then_extra; ++i) learn(out[common + i], then_body.output(common + i), node, "extra output");
  for (size_t i = 0; i < static_cast<size_t>(p.else_extra); ++i)
    learn(out[common + then_extra + i], else_body.output(common + i), node, "extra output");
}

void check_body(const Node& node) {
  if (node.subgraphs.size() == node.op->subgraph_names.size()) return;
  throw Error(ErrorKind::kError, {.op = node.op->name, .node = node.name, .message = "the node has no bodies"});
}

}  // namespace

TensorSpec slice_spec(const TensorSpec& array, bool scalar_slices) {
  if (array.shape.rank_known() && array.shape.ndim() == 1)
    return {scalar_slices ? Shape::scalar() : Shape{1}, array.dtype};
  return without_rows(array);
}

void infer_node(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const ControlKind kind = control_kind(node);
  if (kind == ControlKind::kNone) {
    InferContext context(*node.op, in, out, train);
    node.op->infer(node.params->data(), context);
    return;
  }
  check_body(node);
  if (kind == ControlKind::kForeach) return infer_foreach(node, in, out, train);
  if (kind == ControlKind::kWhileLoop) return infer_while_loop(node, in, out, train);
  infer_cond(node, in, out, train);
}

std::vector<int> body_sources(const Node& node, size_t body) {
  switch (control_kind(node)) {
    case ControlKind::kWhileLoop: {
      const auto& p = params_of<WhileLoopParams>(node);
      return to_ints(body == 0 ? p.cond_input_locs : p.func_input_locs);
    }
    case ControlKind::kCond: {
      const auto& p = params_of<CondParams>(node);
      return to_ints(body == 0 ? p.cond_input_locs : body == 1 ? p.then_input_locs : p.else_input_locs);
    }
    default: {
      const auto& p = params_of<ForeachParams>(node);
      std::vector<int> sources(p.in_data_locs.size() + p.in_state_locs.size() + p.remain_locs.size(), 0);
      int input = 0;
      for (const OptionalInts* list : {&p.in_data_locs, &p.in_state_locs, &p.remain_locs})
        for (int at : to_ints(*list)) sources.at(static_cast<size_t>(at)) = input++;
      return sources;
    }
  }
}

namespace {

template <typename Test>
bool any_in_bodies(const Node& node, Test test) {
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const Ref<Subgraph>& body) {
    const std::vector<Node*> nodes = topological_order(body->outputs);
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node* inner) { return test(*inner); });
  });
}

}  // namespace

bool has_dynamic_shape(const Node& node) {
  if (!node.op) return false;
  if (node.op->data_dependent_shape || (node.op->is_lazy && node.op->is_lazy(node.params->data()))) return true;
  if (control_kind(node) == ControlKind::kCond && params_of<CondParams>(node).dynamic) return true;
  if (control_kind(node) == ControlKind::kWhileLoop) {
    const auto& p = params_of<WhileLoopParams>(node);
    if (p.exact || !p.free_axes.empty() || (p.unbounded && p.num_out_data > 0)) return true;
  }
  return has_dynamic_body(node);
}

bool has_dynamic_body(const Node& node) { return any_in_bodies(node, has_dynamic_shape); }

bool is_bounded_for_gradient(const WhileLoopParams& params) {
  constexpr int64_t kMostIterationsKept = 8192;
  const bool has_checkpoints = !params.checkpoint.empty() && !params.exact && params.free_axes.empty();
  return !params.unbounded && (params.max_iterations <= kMostIterationsKept || has_checkpoints);
}

bool is_unbounded(const Node& node) {
  return control_kind(node) == ControlKind::kWhileLoop && !is_bounded_for_gradient(params_of<WhileLoopParams>(node));
}

bool has_unbounded_body(const Node& node) {
  return any_in_bodies(node, [](const Node& inner) { return is_unbounded(inner) || has_unbounded_body(inner); });
}

std::vector<std::vector<bool>> free_sizes(const WhileLoopParams& params) {
  std::vector<std::vector<bool>> free(params.func_var_locs.size());
  for (size_t i = 0; i + 1 < params.free_axes.size(); i += 2) {
    const auto axis = static_cast<size_t>(*params.free_axes[i + 1]);
    std::vector<bool>& sizes = free.at(static_cast<size_t>(*params.free_axes[i]));
    sizes.resize(std::max(sizes.size(), axis + 1));
    sizes[axis] = true;
  }
  return free;
}

bool is_random(const Node& node) {
  if (!node.op) return false;
  if (node.op->random) return true;
  return any_in_bodies(node, is_random);
}

std::optional<uint64_t> random_stream(const Node& node) {
  const auto found = node.attrs.find(kStreamAttribute);
  if (found == node.attrs.end()) return std::nullopt;
  const std::string& text = found->second;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void set_random_stream(Node& node, uint64_t number) { node.attrs[kStreamAttribute] = std::to_string(number); }

bool repeats_draws(const Node& node) { return node.attrs.count("__repeats_draws__") != 0; }

void mark_as_repeating(Node& node, const Node& of) {
  const std::optional<uint64_t> stream = random_stream(of);
  if (!stream) return;
  set_random_stream(node, *stream);
  node.attrs["__repeats_draws__"] = "1";
}

bool is_opaque(const Node& node) {
  if (!node.op) return false;
  if (node.op->opaque) return true;
  return any_in_bodies(node, is_opaque);
}

namespace {

std::atomic<const OpRef*> counted_op{nullptr};
std::atomic<int (*)(const void* params)> count_arguments{nullptr};

}  // namespace

void count_arguments_by(const OpRef& op, int (*count)(const void* params)) {
  count_arguments.store(count);
  counted_op.store(&op);
}

bool is_auxiliary_input(const Node& node, size_t input) {
  if (!node.op) return false;
  if (node.subgraphs.empty() && node.op->variadic) {
    const OpRef* counted = counted_op.load();
    return counted != nullptr && node.op == &counted->op() &&
           static_cast<int>(input) >= count_arguments.load()(node.params->data());
  }
  if (node.subgraphs.empty()) return input < node.op->inputs.size() && node.op->inputs[input].auxiliary;
  for (size_t b = 0; b < node.subgraphs.size(); ++b) {
    const Subgraph& body = *node.subgraphs[b];
    const std::vector<int> sources = body_sources(node, b);
    for (const Node* inner : topological_order(body.outputs)) {
      for (size_t i = 0; i < inner->inputs.size(); ++i) {
        const NodePtr& variable = inner->inputs[i].node;
        if (!variable->is_variable()) continue;
        const auto at = std::find(body.inputs.begin(), body.inputs.end(), variable);
        if (at == body.inputs.end() ||
            sources[static_cast<size_t>(at - body.inputs.begin())] != static_cast<int>(input))
          continue;
        if (is_auxiliary_input(*inner, i)) return true;
      }
    }
  }
  return false;
}

}  // namespace hybridnet
