#include "plan/compilation_template.h"

#include <algorithm>
#include <cstring>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "hybridnet/ndarray.h"
#include "ndarray/device_work.h"
#include "op/pointwise_program.h"
#include "plan/shared_kernels.h"

namespace hybridnet {
namespace {

const OpRef kFusedElementwise{"_fused_elementwise"};

enum Tape : size_t { kDefinition, kForward, kBackward, kUndifferentiated };

bool same_pattern(const Shape& a, const Shape& b) {
  if (a.ndim() != b.ndim()) return false;
  for (int axis = 0; axis < a.ndim(); ++axis) {
    if ((a[axis] <= 1 || b[axis] <= 1) && a[axis] != b[axis]) return false;
  }
  return true;
}

// Maps each shape of the graphs to the shape that replaces it.
class ShapePairs {
 public:
  bool add(const Shape& first, const Shape& now) {
    const auto forth = forth_.try_emplace(first, now);
    if (!forth.second) return forth.first->second == now;
    if (!back_.try_emplace(now, first).second) one_for_one_ = false;
    return same_pattern(first, now);
  }
  bool one_for_one() const { return one_for_one_; }
  const Shape* now(const Shape& first) const {
    const auto found = forth_.find(first);
    return found == forth_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<Shape, Shape, ShapeHash> forth_, back_;
  bool one_for_one_ = true;
};

bool same_constant(const Node& a, const Node& b) {
  if (a.constant.get() == b.constant.get()) return true;
  if (!a.constant || !b.constant) return false;
  const NDArray x = on_cpu(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(a.constant.get()))));
  const NDArray y = on_cpu(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(b.constant.get()))));
  if (!(x.spec() == y.spec())) return false;
  x.wait_to_read();
  y.wait_to_read();
  return x.bytes() == 0 || std::memcmp(x.data(), y.data(), static_cast<size_t>(x.bytes())) == 0;
}

// Compares two graphs or bodies: true if they hold the same nodes, with the same parameters, sizes, formats and
// readers. Names do not count.
class Comparison {
 public:
  static bool of(const Graph& a, const Graph& b) {
    Comparison comparison;
    comparison.a_ = &a;
    comparison.b_ = &b;
    const auto &of_a = a.writebacks(), &of_b = b.writebacks();
    if (of_a.size() != of_b.size() || a.num_nodes() != b.num_nodes()) return false;
    for (size_t i = 0; i < of_a.size(); ++i) {
      comparison.same_ = comparison.same_ && of_a[i].input == of_b[i].input;
      comparison.want(of_a[i].value, of_b[i].value);
    }
    return comparison.run(a.inputs(), b.inputs(), a.outputs(), b.outputs());
  }
  static bool of(const Subgraph& a, const Subgraph& b) {
    return &a == &b || Comparison().run(a.inputs, b.inputs, a.outputs, b.outputs);
  }

 private:
  bool run(const std::vector<NodePtr>& in_a, const std::vector<NodePtr>& in_b, const std::vector<NodeEntry>& out_a,
           const std::vector<NodeEntry>& out_b) {
    if (in_a.size() != in_b.size() || out_a.size() != out_b.size()) return false;
    for (size_t i = 0; i < in_a.size(); ++i) want({in_a[i], 0}, {in_b[i], 0});
    for (size_t i = 0; i < out_a.size(); ++i) want(out_a[i], out_b[i]);
    while (same_ && !pending_.empty()) {
      const auto [x, y] = pending_.back();
      pending_.pop_back();
      same_ = same_node(*x, *y) && same_formats(*x, *y);
      for (size_t i = 0; same_ && i < x->inputs.size(); ++i) want(x->inputs[i], y->inputs[i]);
    }
    return same_;
  }

  void want(const NodeEntry& x, const NodeEntry& y) {
    same_ = same_ && x.index == y.index;
    const auto [found, is_new] = match_.try_emplace(x.node.get(), y.node.get());
    if (is_new) pending_.emplace_back(x.node.get(), y.node.get());
    same_ = same_ && found->second == y.node.get();
  }

  bool same_formats(Node& x, Node& y) const {
    for (uint32_t i = 0; a_ && i < x.specs.size(); ++i)
      if (a_->format({NodePtr(&x), i}) != b_->format({NodePtr(&y), i})) return false;
    return true;
  }

  static bool same_node(const Node& x, const Node& y) {
    if (x.op != y.op || x.specs != y.specs || x.attrs != y.attrs || x.inputs.size() != y.inputs.size()) return false;
    if (x.is_variable()) return same_constant(x, y);
    const auto same_body = [](const Ref<Subgraph>& a, const Ref<Subgraph>& b) { return of(*a, *b); };
    return std::equal(x.subgraphs.begin(), x.subgraphs.end(), y.subgraphs.begin(), y.subgraphs.end(), same_body) &&
           same_params(*x.op, x.params, y.params);
  }

  const Graph *a_ = nullptr, *b_ = nullptr;  // null: bodies
  std::unordered_map<const Node*, const Node*> match_;
  std::vector<std::pair<Node*, Node*>> pending_;
  bool same_ = true;
};

bool at_least(const std::vector<TensorSpec>& a, const std::vector<TensorSpec>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    for (int axis = 0; axis < a[i].shape.ndim(); ++axis)
      if (a[i].shape[axis] < b[i].shape[axis]) return false;
  return true;
}

bool same_source(const BackwardInput& a, const BackwardInput& b) { return a.kind == b.kind && a.index == b.index; }

// True if the parameters and the specs of the inputs determine everything about this use of an operator.
bool is_sized_by_inputs(const Node& node) {
  return node.is_variable() || (!is_opaque(node) && !has_dynamic_shape(node));
}

LinkedPlans linked_of(const Compilation& call) {
  return {call.forward->linked(), call.backward ? call.backward->linked() : nullptr};
}

bool has_bodies(const Node* node) { return !node->subgraphs.empty(); }

}  // namespace

// ----------------------------------------------------------------------------------------------------------- SpecTape
SpecTape::SpecTape(const std::vector<Node*>& order, bool train) : train_(train) {
  for (Node* node : order) {
    Step step{node, {}, values.size(), static_cast<size_t>(node->num_outputs())};
    for (const NodeEntry& input : node->inputs) step.in.push_back(first_value_.at(input.node.get()) + input.index);
    first_value_[node] = step.out;
    values.resize(values.size() + step.num_out);
    if (node->is_variable() && !node->specs.empty()) values[step.out] = node->specs[0];
    if (!node->is_variable()) steps_.push_back(std::move(step));
  }
}

bool SpecTape::infer() {
  for (const Step& step : steps_) {
    in_.clear();
    for (const size_t value : step.in) in_.push_back(values[value]);
    const std::span<TensorSpec> out(values.data() + step.out, step.num_out);
    std::fill(out.begin(), out.end(), TensorSpec{});
    infer_node(*step.node, in_, out, train_);
    for (const TensorSpec& spec : out)
      if (!spec.known()) return false;
  }
  return true;
}

std::vector<TensorSpec> SpecTape::body_inputs() const {
  std::vector<TensorSpec> specs;
  for (const Step& step : steps_) {
    if (step.node->subgraphs.empty()) continue;
    std::vector<TensorSpec> in;
    for (const size_t value : step.in) in.push_back(values[value]);
    for (size_t body = 0; body < step.node->subgraphs.size(); ++body)
      for (const TensorSpec& spec : body_input_specs(*step.node, body, in)) specs.push_back(spec);
  }
  return specs;
}

void SpecTape::store() const {
  for (const auto& [node, first] : first_value_) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    node->specs.assign(begin, begin + static_cast<std::ptrdiff_t>(node->specs.size()));
  }
}

// ------------------------------------------------------------------------------------------------------- CompilationTemplate
CompilationTemplate::CompilationTemplate(const GraphDefinition& definition, const CallSignature& signature,
                                         const CompileOptions& options, GraphSizes sizes)
    : definition_(definition),
      options_(options),
      sizes_(sizes),
      first_(signature),
      current_(signature),
      smallest_(signature.inputs),
      largest_(signature.inputs) {
  const std::vector<Node*> nodes = topological_order(definition.roots());
  has_bodies_ = std::any_of(nodes.begin(), nodes.end(), has_bodies);
  // With `debug`, rewrites run on the arrays of the call, so graphs are rewritten for these. A limit of bytes to keep
  // holds for each size separately.
  generic_ = !options.query.debug && options.remat_policy.kind != RematPolicy::Kind::kBytes &&
             std::all_of(nodes.begin(), nodes.end(), [](const Node* node) { return is_sized_by_inputs(*node); });
  JointObserver observe;
  if (generic_) observe = [this](Graph& joint) { joint_ = describe(joint); };
  {
    const SizeQuestionScope remembered(generic_ ? &questions_ : nullptr, sizes);
    rewritten_ = rewrite_graphs(definition, signature, options, generic_, observe);
  }
  if (generic_) find_rule_params();
}

void CompilationTemplate::make_tapes() {
  tapes_.reserve(kUndifferentiated + 1);
  tapes_.emplace_back(topological_order(definition_.roots()), first_.train);
  for (const Graph* graph : {&rewritten_.forward, &rewritten_.backward, &rewritten_.undifferentiated})
    tapes_.emplace_back(graph->order(), first_.train);
}

CompilationTemplate::Joint CompilationTemplate::describe(const Graph& joint) {
  Joint nodes;
  std::unordered_map<const Node*, int> numbers;
  for (const Node* node : joint.order()) {
    JointNode described{node->op, node->params, {}};
    for (const NodeEntry& input : node->inputs)
      described.inputs.emplace_back(numbers.at(input.node.get()), input.index);
    numbers[node] = static_cast<int>(nodes.size());
    nodes.push_back(std::move(described));
  }
  return nodes;
}

void CompilationTemplate::find_rule_params() {
  std::set<const Params*> others;  // made before differentiation, by the user or by rewrites
  for (const Node* node : rewritten_.undifferentiated.order()) others.insert(node->params.get());
  std::unordered_map<const Params*, size_t> found;
  for (size_t i = 0; i < joint_.size(); ++i) {
    const JointNode& node = joint_[i];
    if (!node.op || node.params.get() == node.op->default_params.get() || others.count(node.params.get()) != 0)
      continue;
    const auto [place, is_new] = found.try_emplace(node.params.get(), rule_params_.size());
    if (is_new) rule_params_.push_back({{}, node.params, false, {}, {}});
    rule_params_[place->second].makers.push_back(i);
  }
  for (const Graph* graph : {&rewritten_.forward, &rewritten_.backward}) {
    for (Node* node : graph->order()) {
      if (node->is_variable()) continue;
      if (const auto place = found.find(node->params.get()); place != found.end())
        rule_params_[place->second].users.push_back(NodePtr(node));
      if (node->op != &kFusedElementwise.op()) continue;
      const auto& steps = node->params->as<PointwiseProgram>().steps;
      for (size_t s = 0; s < steps.size(); ++s) {
        if (const auto place = found.find(steps[s].params.get()); place != found.end())
          rule_params_[place->second].steps.emplace_back(NodePtr(node), s);
      }
    }
  }
  std::erase_if(rule_params_, [](const RuleParams& params) { return params.users.empty() && params.steps.empty(); });
}

bool CompilationTemplate::differs_in_sizes_only(const CallSignature& signature) const {
  if (!(signature.device == first_.device) || signature.train != first_.train || signature.wants != first_.wants ||
      signature.heads != first_.heads)
    return false;
  for (size_t i = 0; i < first_.inputs.size(); ++i) {
    if (signature.inputs[i].dtype != first_.inputs[i].dtype ||
        !same_pattern(signature.inputs[i].shape, first_.inputs[i].shape))
      return false;
  }
  return true;
}

std::vector<CompilationTemplate::Axis> CompilationTemplate::resized_axes(const CallSignature& signature) const {
  std::vector<Axis> axes;
  for (size_t i = 0; i < first_.inputs.size(); ++i) {
    const Shape &first = first_.inputs[i].shape, &now = signature.inputs[i].shape;
    for (int axis = 0; axis < first.ndim(); ++axis)
      if (first[axis] != now[axis]) axes.emplace_back(i, axis);
  }
  return axes;
}

bool CompilationTemplate::is_proved_for(const CallSignature& signature) const {
  const std::vector<Axis> axes = resized_axes(signature);
  if (!std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) { return proved_.count(axis) != 0; })) return false;
  const auto lies_between = [&](const Axis& axis) {
    const auto [input, number] = axis;
    const int64_t size = signature.inputs[input].shape[number];
    return smallest_[input].shape[number] <= size && size <= largest_[input].shape[number];
  };
  return !has_bodies_ || std::all_of(axes.begin(), axes.end(), lies_between);
}

std::vector<CallSignature> CompilationTemplate::to_prove(const CallSignature& signature) const {
  if (!has_bodies_) return {};
  CallSignature larger = signature, smaller = signature;
  larger.inputs = largest_;
  smaller.inputs = smallest_;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    for (int axis = 0; axis < signature.inputs[i].shape.ndim(); ++axis) {
      const int64_t size = signature.inputs[i].shape[axis];
      int64_t &large = larger.inputs[i].shape[axis], &small = smaller.inputs[i].shape[axis];
      if (size > large) large = size + size / 2;
      if (size < small) small = std::max<int64_t>(2, size - size / 3);
    }
  }
  std::vector<CallSignature> proofs;
  if (larger.inputs != largest_) proofs.push_back(std::move(larger));
  if (smaller.inputs != smallest_) proofs.push_back(std::move(smaller));
  return proofs;
}

bool CompilationTemplate::resize(const CallSignature& signature, Coincidence coincidence) {
  try {
    return infer_sizes(signature) && (one_for_one_ || coincidence == Coincidence::kAllowed);
  } catch (const Error&) {
    return false;  // compiling anew finds the reason in the user's graph
  }
}

bool CompilationTemplate::infer_sizes(const CallSignature& signature) {
  if (first_values_.empty()) {  // not needed so far
    make_tapes();
    first_values_.resize(tapes_.size());
    if (!infer_sizes(first_)) return false;
    for (size_t i = 0; i < tapes_.size(); ++i) {
      first_values_[i] = tapes_[i].values;
      first_body_inputs_.push_back(tapes_[i].body_inputs());
    }
  }
  current_ = signature;
  SpecTape& definition = tapes_[kDefinition];
  for (size_t i = 0; i < definition_.inputs.size(); ++i)
    if (definition.has(definition_.inputs[i].get())) definition[{definition_.inputs[i], 0}] = signature.inputs[i];
  if (!definition.infer()) return false;
  const bool ask = !rule_params_.empty() && (rule_params_changed_ || !is_proved_for(signature));
  if (ask && !ask_gradient_rules(signature)) return false;
  return infer_graph(rewritten_.forward, tapes_[kForward], signature) &&
         infer_graph(rewritten_.backward, tapes_[kBackward], signature) && shapes_correspond() &&
         results_fit(signature);
}

bool CompilationTemplate::infer_graph(Graph& graph, SpecTape& tape, const CallSignature& signature) {
  const std::vector<NodeEntry>& made = rewritten_.forward.outputs();
  const size_t num_outputs = made.size() - static_cast<size_t>(rewritten_.num_residuals);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    TensorSpec& spec = tape[{graph.inputs()[i], 0}];
    if (&graph != &rewritten_.backward) {
      spec = signature.inputs[i];
      continue;
    }
    const BackwardInput& source = rewritten_.sources[i];
    const auto index = static_cast<size_t>(source.index);
    if (source.kind == BackwardInput::Kind::kForwardInput) {
      spec = signature.inputs[index];
    } else {
      spec = tapes_[kForward][made[source.kind == BackwardInput::Kind::kResidual ? num_outputs + index : index]];
    }
  }
  if (!tape.infer()) return false;
  tape.store();
  return true;
}

// Updates the parameters that gradient rules take from sizes. Once the rules that do so are known, only these are
// called.
bool CompilationTemplate::ask_gradient_rules(const CallSignature& signature) {
  if (!infer_graph(rewritten_.undifferentiated, tapes_[kUndifferentiated], signature)) return false;
  return knows_sized_rules_ && is_proved_for(signature) ? ask_sized_gradient_rules()
                                                        : ask_all_gradient_rules(signature);
}

// Differentiates the graph once more.
bool CompilationTemplate::ask_all_gradient_rules(const CallSignature& signature) {
  EntryMap clones;
  std::vector<AskedRule> asked;
  Graph joint = copy_of(rewritten_.undifferentiated, false, &clones);
  add_gradients_of_call(joint, signature, options_, &asked);
  const Joint now = describe(joint);
  const auto same = [](const JointNode& a, const JointNode& b) { return a.op == b.op && a.inputs == b.inputs; };
  if (!std::equal(now.begin(), now.end(), joint_.begin(), joint_.end(), same)) return false;
  for (RuleParams& params : rule_params_) {
    const ParamsPtr& made = now[params.makers[0]].params;
    const Op& op = *joint_[params.makers[0]].op;
    for (const size_t maker : params.makers)
      if (!op.schema->equal(made->data(), now[maker].params->data())) return false;
    if (!op.schema->equal(made->data(), params.now->data())) take_over(params, made);
  }
  find_sized_rules(joint, asked, clones);
  return true;
}

void CompilationTemplate::take_over(RuleParams& params, const ParamsPtr& made) {
  params.now = made;
  params.hold_sizes = true;
  rule_params_changed_ = true;
  for (const NodePtr& user : params.users) user->params = made;
  for (const auto& [user, step] : params.steps) {
    PointwiseProgram program = user->params->as<PointwiseProgram>();
    program.steps[step].params = made;
    user->params = ParamSchema<PointwiseProgram>::box(std::move(program));
  }
}

void CompilationTemplate::find_sized_rules(const Graph& joint, const std::vector<AskedRule>& asked,
                                           const EntryMap& clones) {
  std::unordered_map<const Node*, size_t> numbers;  // in joint_
  for (const Node* node : joint.order()) numbers.emplace(node, numbers.size());
  std::unordered_map<const Node*, const Node*> original_of;
  for (const auto& [original, clone] : clones) original_of[clone.node.get()] = original.node.get();
  std::unordered_map<size_t, int> params_of;  // by number of the maker
  for (size_t i = 0; i < rule_params_.size(); ++i)
    for (const size_t maker : rule_params_[i].makers)
      if (rule_params_[i].hold_sizes) params_of[maker] = static_cast<int>(i);
  sized_rules_.clear();
  size_t found = 0;
  for (const AskedRule& rule : asked) {
    SizedRule sized{nullptr, rule.arrives, rule.wanted, {}, {}};
    for (const Node* made : rule.made) {
      const auto number = numbers.find(made);
      const auto params = number == numbers.end() ? params_of.end() : params_of.find(number->second);
      sized.ops.push_back(made->op);
      sized.params.push_back(params == params_of.end() ? -1 : params->second);
      sized.node = params == params_of.end() ? sized.node : original_of.at(rule.node);
      found += params == params_of.end() ? 0 : 1;
    }
    if (sized.node) sized_rules_.push_back(std::move(sized));
  }
  knows_sized_rules_ = !has_bodies_ && found == params_of.size();
}

bool CompilationTemplate::ask_sized_gradient_rules() {
  const Graph& graph = rewritten_.undifferentiated;
  struct Answer {
    const SizedRule* rule;
    std::vector<RuleNode> nodes;
  };
  std::vector<Answer> answers;
  const auto same_question = [&](const SizedRule& a, const SizedRule& b) {  // true for equal layers of a network
    return a.node->op == b.node->op && a.arrives == b.arrives && a.wanted == b.wanted &&
           a.node->specs == b.node->specs &&
           std::equal(a.node->inputs.begin(), a.node->inputs.end(), b.node->inputs.begin(), b.node->inputs.end(),
                      [&](const NodeEntry& x, const NodeEntry& y) { return graph.spec(x) == graph.spec(y); }) &&
           same_params(*a.node->op, a.node->params, b.node->params);
  };
  std::vector<ParamsPtr> found(rule_params_.size());
  for (const SizedRule& rule : sized_rules_) {
    auto answer = std::find_if(answers.begin(), answers.end(),
                               [&](const Answer& known) { return same_question(*known.rule, rule); });
    if (answer == answers.end())
      answer = answers.insert(answers.end(), {&rule, ask_gradient_rule(graph, *rule.node, rule.arrives, rule.wanted)});
    const std::vector<RuleNode>& nodes = answer->nodes;
    if (!std::equal(nodes.begin(), nodes.end(), rule.ops.begin(), rule.ops.end(),
                    [](const RuleNode& node, const Op* op) { return node.op == op; }))
      return false;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (rule.params[i] < 0) continue;
      ParamsPtr& made = found[static_cast<size_t>(rule.params[i])];
      if (made && !same_params(*nodes[i].op, made, nodes[i].params)) return false;
      made = nodes[i].params;
    }
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i] && !same_params(*joint_[rule_params_[i].makers[0]].op, found[i], rule_params_[i].now))
      take_over(rule_params_[i], found[i]);
  return true;
}

bool CompilationTemplate::shapes_correspond() {
  ShapePairs pairs;
  for (size_t i = 0; i < first_values_.size(); ++i) {
    const std::vector<TensorSpec>&first = first_values_[i], &now = tapes_[i].values;
    if (i == kUndifferentiated || first.empty()) continue;  // its values are among those of the others, or dropped
    if (has_bodies_ && tapes_[i].body_inputs() != first_body_inputs_[i]) return false;
    for (size_t k = 0; k < now.size(); ++k)
      if (now[k].dtype != first[k].dtype || !pairs.add(first[k].shape, now[k].shape)) return false;
  }
  one_for_one_ = pairs.one_for_one();
  const bool is_first = first_values_[kDefinition].empty();
  return is_first || questions_.same_answers([&](const Shape& first) { return pairs.now(first); });
}

bool CompilationTemplate::results_fit(const CallSignature& signature) {
  for (size_t i = 0; i < definition_.outputs.size(); ++i) {
    if (!(tapes_[kForward][rewritten_.forward.outputs()[i]] == tapes_[kDefinition][definition_.outputs[i]]))
      return false;
  }
  for (const Graph::Writeback& writeback : rewritten_.forward.writebacks())
    if (!(tapes_[kForward][writeback.value] == signature.inputs[static_cast<size_t>(writeback.input)])) return false;
  for (size_t i = 0; i < rewritten_.gradient_of_input.size(); ++i) {
    const int output = rewritten_.gradient_of_input[i];
    if (output < 0) continue;
    const NodeEntry& gradient = rewritten_.backward.outputs()[static_cast<size_t>(output)];
    if (!(tapes_[kBackward][gradient] == signature.inputs[i])) return false;
  }
  return true;
}

bool CompilationTemplate::prove(const CompilationTemplate& fresh) {
  failed_proofs_ += one_for_one_ ? 1 : 0;  // unless it succeeds
  const RewrittenGraphs &a = rewritten_, &b = fresh.rewritten_;
  if (a.num_residuals != b.num_residuals || a.gradient_of_input != b.gradient_of_input ||
      a.rows_of_input != b.rows_of_input ||
      !std::equal(a.sources.begin(), a.sources.end(), b.sources.begin(), b.sources.end(), same_source) ||
      !Comparison::of(a.forward, b.forward) || !Comparison::of(a.backward, b.backward))
    return false;
  if (!one_for_one_) return true;  // rules may have taken one size for another: this proves nothing for other sizes
  failed_proofs_ -= 1;
  for (const Axis& axis : resized_axes(current_)) proved_.insert(axis);
  // Limits hold between two signatures if no size of the one is above that of the other.
  if (at_least(current_.inputs, largest_)) largest_ = current_.inputs;
  if (at_least(smallest_, current_.inputs)) smallest_ = current_.inputs;
  return true;
}

// ------------------------------------------------------------------------------------------------------- Compiler
Ref<Compilation> Compiler::link(size_t known, const CallSignature& signature) {
  CompilationTemplate& used = *templates_[known];
  Ref<Compilation> call = link_compilation(used.rewritten(), definition_, signature, options_, used.linked);
  note_linked(*call, used.linked);
  if (!used.linked.forward) used.linked = linked_of(*call);
  const auto first = templates_.begin(), place = first + static_cast<std::ptrdiff_t>(known);
  std::rotate(first, place, place + 1);
  return call;
}

void Compiler::note_linked(const Compilation& call, const LinkedPlans& known) {
  ++num_layouts_;
  if (call.forward->linked() != known.forward) ++num_linked_;
}

// Rewrites for larger or smaller sizes, so that sizes which keep growing are proved a few times only.
bool Compiler::prove(CompilationTemplate& known, const CallSignature& signature) {
  const std::vector<CallSignature> proofs = known.to_prove(signature);
  for (const CallSignature& proof : proofs) {
    if (!known.resize(proof)) return false;
    try {
      const CompilationTemplate fresh(definition_, proof, options_, known.sizes());
      ++num_rewritten_;
      if (!fresh.is_generic() || !known.prove(fresh)) return false;
    } catch (const Error&) {
      return false;  // the user has not asked for these sizes
    }
  }
  return !proofs.empty();
}

// Drops templates that other rewrites have made: they serve no new sizes.
void Compiler::forget_other_rules() {
  std::string rules = std::to_string(PipelineScope::current().pipeline->generation()) + " " +
                      QueryScope::applied_to(options_.query).text();
  if (rules == rules_) return;
  templates_.clear();
  rules_ = std::move(rules);
}

Ref<Compilation> Compiler::compile(const CallSignature& signature) {
  forget_other_rules();
  for (size_t i = 0; i < templates_.size(); ++i) {
    CompilationTemplate& known = *templates_[i];
    if (!known.differs_in_sizes_only(signature) || !known.may_serve()) continue;
    if (!known.is_proved_for(signature) && !prove(known, signature)) continue;
    if (known.is_proved_for(signature) && known.resize(signature)) return link(i, signature);
  }
  const bool varies = std::any_of(templates_.begin(), templates_.end(),
                                  [&](const auto& known) { return known->differs_in_sizes_only(signature); });
  auto fresh = std::make_unique<CompilationTemplate>(definition_, signature, options_,
                                                     varies ? GraphSizes::kMayVary : GraphSizes::kFixed);
  ++num_rewritten_;
  if (fresh->is_generic()) {
    for (size_t i = 0; i < templates_.size(); ++i) {
      CompilationTemplate& known = *templates_[i];
      if (known.differs_in_sizes_only(signature) && known.may_serve() &&
          known.resize(signature, CompilationTemplate::Coincidence::kAllowed) && known.prove(*fresh))
        return link(i, signature);
    }
    templates_.insert(templates_.begin(), std::move(fresh));
    if (templates_.size() > kMaxTemplates) templates_.pop_back();
    return link(0, signature);
  }
  Ref<Compilation> call = link_compilation(fresh->rewritten(), definition_, signature, options_);
  note_linked(*call, {});
  return call;
}

std::string Compiler::graph_text(const CallSignature& signature) {
  const RewrittenGraphs call = rewrite_graphs(definition_, signature, options_, false, {});
  const std::string text = call.forward.text();
  return call.num_gradients == 0 ? text : text + "backward:\n" + call.backward.text();
}

}  // namespace hybridnet
