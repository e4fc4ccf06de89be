// Inference of loops and branches in both directions: from inputs through bodies to outputs, and from bodies back to
// inputs of unknown shape (parameters that are made inside a body).
#include <algorithm>
#include <atomic>
#include <charconv>

#include "graph/control/control_flow.h"
#include "graph/control/rules.h"

namespace hybridnet {
namespace {

constexpr char kStreamAttribute[] = "__rng_stream__";
constexpr int kMaxRounds = 8;  // facts pass from one state to the next in each round

// Merges `known` into `spec`; returns false on a contradiction.
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

// A body during inference: the specs of its inputs and outputs.
class Body {
 public:
  Body(const Node& node, size_t index, bool train) : graph_(*node.subgraphs[index]), train_(train) {}

  TensorSpec& input(size_t i) { return specs_[{graph_.inputs[i], 0}]; }
  TensorSpec output(size_t i) { return specs_[graph_.outputs[i]]; }
  size_t num_inputs() const { return graph_.inputs.size(); }
  size_t num_outputs() const { return graph_.outputs.size(); }
  // Merges a spec known outside into the spec of an output, unless they contradict each other.
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

[[noreturn]] void throw_carry_changes(const Node& node, Body& body, size_t carry, size_t output,
                                      const TensorSpec& before, const TensorSpec& after) {
  const bool is_while = control_kind(node) == ControlKind::kWhileLoop;
  const std::string which = (is_while ? "loop_vars[" : "states[") + std::to_string(carry) + "]";
  BrokenRule broken = *carry_rule(which, before, after, {}, is_while);
  broken.fields.given += " from the body" + line_of(body.maker(output));
  throw_broken(std::move(broken), node.op->name, {node.name, node.where});
}

// Returns the spec of a state that holds in every iteration: sizes that may change are unknown.
TensorSpec in_every_iteration(TensorSpec spec, const std::vector<bool>& free) {
  if (!spec.shape.rank_known()) return spec;
  for (size_t axis = 0; axis < free.size() && static_cast<int>(axis) < spec.shape.ndim(); ++axis)
    if (free[axis]) spec.shape[static_cast<int>(axis)] = kUnknownDim;
  return spec;
}

// Infers a body whose carries keep their specs from iteration to iteration, except for free sizes.
void infer_loop_body(const Node& node, Body& body, const std::vector<std::vector<bool>>& free) {
  const LoopSpec& loop = loop_of(node);
  for (int round = 0; round < kMaxRounds; ++round) {
    body.run();
    bool learned = false;
    for (size_t s = 0; s < loop.carries(); ++s) {
      const size_t next = loop.final_carry(s);
      TensorSpec& in = body.input(loop.carry(s));
      const TensorSpec after = in_every_iteration(body.output(next), free[s]);
      TensorSpec merged = in;
      if (!unify(merged, after)) throw_carry_changes(node, body, s, next, in, after);
      if (!(merged == in)) {
        in = merged;
        learned = true;
      }
      if (!(merged == after)) {
        const TensorSpec before = body.output(next);
        body.learn_output(next, merged);
        learned = learned || !(body.output(next) == before);
      }
    }
    if (!learned) return;
  }
}

// Returns the number of iterations of a _foreach, known from its length, its data or its stacked outputs. Throws
// ShapeError if these contradict each other.
int64_t infer_rows(const Node& node, std::span<const TensorSpec> in, std::span<const TensorSpec> out) {
  const LoopSpec& loop = loop_of(node);
  int64_t rows = loop.length.value_or(kUnknownDim);
  auto see_rows = [&](const TensorSpec& spec, const std::string& what) {
    const int64_t given = spec.shape.rank_known() && spec.shape.ndim() > 0 ? spec.shape[0] : kUnknownDim;
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
  for (size_t i = 0; i < loop.seqs(); ++i) {
    if (in[i].shape.rank_known() && in[i].shape.ndim() == 0) {
      throw ShapeError({.op = node.op->name,
                        .node = node.name,
                        .input = "data " + std::to_string(i),
                        .expected = "at least one axis",
                        .given = in[i].str()});
    }
    see_rows(in[i], "data " + std::to_string(i));
  }
  for (size_t i = 0; i < loop.outs(); ++i) see_rows(out[i], "output " + std::to_string(i));
  return rows;
}

void check_one_element(const Node& node, const char* what, const TensorSpec& test, const char* fix) {
  if (!test.shape.known() || test.shape.size() == 1) return;
  throw ShapeError({.op = node.op->name,
                    .node = node.name,
                    .input = what,
                    .expected = "one element",
                    .given = test.str(),
                    .fix = fix});
}

void infer_loop(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const LoopSpec& loop = loop_of(node);
  const bool is_while = control_kind(node) == ControlKind::kWhileLoop;
  const char* const carry = is_while ? "variable " : "state ";
  const int64_t rows = !is_while    ? infer_rows(node, in, out)
                       : loop.exact ? kUnknownDim
                                    : loop.max_iterations.value_or(kUnknownDim);
  const std::vector<std::vector<bool>> free = free_sizes(loop);

  Body body(node, node.subgraphs.size() - 1, train);
  for (size_t k = 0; k < loop.slots(); ++k)
    body.input(k) = k < loop.seqs() ? slice_spec(in[k], loop.scalar_slices) : in[k];
  for (size_t i = 0; i < loop.outs(); ++i) body.learn_output(i, without_rows(out[i]));
  for (size_t s = 0; s < loop.carries(); ++s) {
    TensorSpec& slot = body.input(loop.carry(s));
    slot = in_every_iteration(slot, free[s]);
    learn(slot, in_every_iteration(out[loop.final_carry(s)], free[s]), node, carry + std::to_string(s));
  }
  infer_loop_body(node, body, free);
  for (size_t k = 0; k < loop.slots(); ++k) {
    if (k >= loop.seqs())
      learn(in[k], body.input(k), node, "input " + std::to_string(k));
    else if (in[k].shape.rank_known() && in[k].shape.ndim() == 1)
      learn(in[k], {Shape{rows}, body.input(k).dtype}, node, "data " + std::to_string(k));
    else
      learn(in[k], with_rows(body.input(k), rows), node, "data " + std::to_string(k));
  }

  if (is_while) {
    Body condition(node, 0, train);
    for (size_t k = 0; k < loop.slots(); ++k)
      condition.input(k) = k < loop.carries() ? in_every_iteration(in[k], free[k]) : in[k];
    condition.run();
    for (size_t k = 0; k < loop.slots(); ++k) learn(in[k], condition.input(k), node, "input " + std::to_string(k));
    check_one_element(node, "cond", condition.output(0), "reduce the condition with max() (any) or min() (all)");
    learn(out[loop.final_carry(loop.carries())], {loop.scalar_slices ? Shape::scalar() : Shape{1}, DType::kInt64}, node,
          "count");
  }
  for (size_t i = 0; i < loop.outs(); ++i)
    learn(out[i], with_rows(body.output(i), rows), node, "output " + std::to_string(i));
  for (size_t s = 0; s < loop.carries(); ++s)
    learn(out[loop.final_carry(s)], body.input(loop.carry(s)), node, carry + std::to_string(s));
}

// ---------------------------------------------------------------------------------------------------------------- cond
[[noreturn]] void throw_branches_differ(const Node& node, size_t i, Body& then_body, const TensorSpec& one,
                                        Body& else_body, const TensorSpec& other) {
  ErrorFields e;
  e.op = node.op->name;
  e.node = node.name;
  e.input = "output " + std::to_string(i);
  e.expected = one.str() + " from the then branch" + line_of(then_body.maker(i));
  e.given = other.str() + " from the else branch" + line_of(else_body.maker(i));
  e.because = "later steps do not know which branch was taken";
  e.fix = "cast or reshape in one of the branches";
  e.where = node.where;
  if (one.dtype != other.dtype) throw DTypeError(std::move(e));
  throw ShapeError(std::move(e));
}

// Copies specs known outside to outputs that the body does not determine. Returns false if there are none.
bool learn_unknown_outputs(Body& body, std::span<const TensorSpec> known) {
  bool learned = false;
  for (size_t i = 0; i < known.size(); ++i) {
    if (body.output(i).known() || known[i] == TensorSpec{}) continue;
    body.learn_output(i, known[i]);
    learned = true;
  }
  return learned;
}

// True if outputs of two branches may differ only in sizes: they have the same dtype and number of axes.
bool may_share_output(const TensorSpec& one, const TensorSpec& other) {
  const bool any_unknown = one.dtype == DType::kUnknown || other.dtype == DType::kUnknown;
  if (one.dtype != other.dtype && !any_unknown) return false;
  return !one.shape.rank_known() || !other.shape.rank_known() || one.shape.ndim() == other.shape.ndim();
}

// Returns the spec common to both branches; sizes that differ are unknown.
TensorSpec join(const TensorSpec& one, const TensorSpec& other) {
  TensorSpec both = one;
  if (!one.shape.rank_known() || !other.shape.rank_known()) return both;
  for (int i = 0; i < both.shape.ndim(); ++i)
    if (i >= other.shape.ndim() || both.shape[i] != other.shape[i]) both.shape[i] = kUnknownDim;
  return both;
}

void infer_cond(const Node& node, std::span<TensorSpec> in, std::span<TensorSpec> out, bool train) {
  const BranchSpec& branch = branch_of(node);
  Body bodies[] = {{node, 0, train}, {node, 1, train}, {node, 2, train}};
  for (size_t b = 0; b < 3; ++b) {
    Body& body = bodies[b];
    for (size_t k = 0; k < in.size(); ++k) body.input(k) = in[k];
    body.run();
    if (b > 0 && !branch.dynamic && learn_unknown_outputs(body, out.first(branch.outs()))) body.run();
    for (size_t k = 0; k < in.size(); ++k) learn(in[k], body.input(k), node, "input " + std::to_string(k));
    if (b == 0) check_one_element(node, "pred", body.output(0), "reduce it with max() (any) or min() (all)");
  }
  for (size_t i = 0; i < branch.outs(); ++i) {
    const TensorSpec one = bodies[1].output(i), other = bodies[2].output(i);
    TensorSpec both = one;
    if (branch.dynamic || !unify(both, other)) {
      if (branch.strict_shape || !may_share_output(one, other))
        throw_branches_differ(node, i, bodies[1], one, bodies[2], other);
      both = join(one, other);
    }
    learn(out[i], both, node, "output " + std::to_string(i));
  }
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = branch.outs(); i < branch.outputs_of(b); ++i)
      learn(out[branch.output_of(b, i)], bodies[b + 1].output(i), node, "extra output");
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
  if (kind == ControlKind::kCond) return infer_cond(node, in, out, train);
  infer_loop(node, in, out, train);
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
  if (control_kind(node) == ControlKind::kCond && branch_of(node).dynamic) return true;
  if (control_kind(node) == ControlKind::kWhileLoop) {
    const LoopSpec& loop = loop_of(node);
    if (loop.exact || !loop.free_axes.empty() || (!loop.max_iterations && loop.num_out > 0)) return true;
  }
  return has_dynamic_body(node);
}

bool has_dynamic_body(const Node& node) { return any_in_bodies(node, has_dynamic_shape); }

bool is_bounded_for_gradient(const LoopSpec& loop) {
  constexpr int64_t kMaxIterationsKept = 8192;
  const bool has_checkpoints = !loop.checkpoint.empty() && !loop.exact && loop.free_axes.empty();
  return loop.max_iterations && (*loop.max_iterations <= kMaxIterationsKept || has_checkpoints);
}

bool is_unbounded(const Node& node) {
  return control_kind(node) == ControlKind::kWhileLoop && !is_bounded_for_gradient(loop_of(node));
}

bool has_unbounded_body(const Node& node) {
  return any_in_bodies(node, [](const Node& inner) { return is_unbounded(inner) || has_unbounded_body(inner); });
}

std::vector<std::vector<bool>> free_sizes(const LoopSpec& loop) {
  std::vector<std::vector<bool>> free(loop.carries());
  for (size_t i = 0; i + 1 < loop.free_axes.size(); i += 2) {
    const auto axis = static_cast<size_t>(*loop.free_axes[i + 1]);
    std::vector<bool>& sizes = free.at(static_cast<size_t>(*loop.free_axes[i]));
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
void clear_random_stream(Node& node) { node.attrs.erase(kStreamAttribute); }

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
  if (node.op->first_state) return static_cast<int>(input) >= node.op->first_state(node.params->data());
  if (node.subgraphs.empty()) return input < node.op->inputs.size() && node.op->inputs[input].auxiliary;
  for (const Ref<Subgraph>& body : node.subgraphs) {
    if (input >= body->inputs.size()) continue;  // the count or limit, which bodies do not see
    const Node* const variable = body->inputs[input].get();
    for (const Node* inner : topological_order(body->outputs))
      for (size_t i = 0; i < inner->inputs.size(); ++i)
        if (inner->inputs[i].node.get() == variable && is_auxiliary_input(*inner, i)) return true;
  }
  return false;
}

}  // namespace hybridnet
