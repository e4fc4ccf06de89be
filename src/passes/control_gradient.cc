#include "passes/control_gradient.h"

#include <algorithm>
#include <optional>

#include "graph/control_flow.h"
#include "hybridnet/ndarray.h"
#include "passes/body_gradient.h"
#include "passes/body_graph.h"
#include "passes/checkpoint_loops.h"

namespace hybridnet {
namespace {

constexpr double kAutodiff = 10;  // position in the pipeline

const OpRef kAdd{"elemwise_add"}, kZeros{"_zeros"}, kReshape{"Reshape"}, kSliceAxis{"slice_axis"}, kConcat{"Concat"},
    kCopy{"_copy"}, kWhere{"where"}, kBroadcastTo{"broadcast_to"}, kDot{"dot"}, kSum{"sum"};

using Kind = BackwardInput::Kind;
using TextAttrs = std::vector<std::pair<std::string, std::string>>;

NodeEntry emit(Graph& graph, const OpRef& op, std::vector<NodeEntry> inputs, const TextAttrs& attrs,
               const Node* origin) {
  ParamsPtr params = attrs.empty() ? op.op().default_params : op.op().schema->parse(attrs, op.op().name, false);
  return {graph.add(op.op(), std::move(params), std::move(inputs), origin), 0};
}

NodeEntry zeros(Graph& graph, const TensorSpec& spec, const Node* origin) {
  if (spec.shape.size() == 0) return {graph.add_constant(Ref<Object>(NDArray::empty(spec).impl()), spec), 0};
  return emit(graph, kZeros, {}, {{"shape", spec.shape.str()}, {"dtype", dtype_name(spec.dtype)}}, origin);
}

NodeEntry reshaped(Graph& graph, const NodeEntry& entry, const Shape& shape, const Node* origin) {
  return graph.spec(entry).shape == shape ? entry : emit(graph, kReshape, {entry}, {{"shape", shape.str()}}, origin);
}

NodeEntry sum(Graph& graph, const NodeEntry& a, const NodeEntry& b, const Node* origin) {
  if (!a.node) return b;
  return b.node ? emit(graph, kAdd, {a, b}, {}, origin) : a;
}

std::vector<TensorSpec> specs_of(const Graph& graph, const std::vector<NodeEntry>& entries) {
  std::vector<TensorSpec> specs;
  for (const NodeEntry& entry : entries) specs.push_back(graph.spec(entry));
  return specs;
}

Graph prepared_body(const Graph& graph, const Node& node, size_t body) {
  const std::vector<TensorSpec> inputs = specs_of(graph, node.inputs);
  Graph result = body_graph(node, body, body_input_specs(node, body, inputs), graph.train());
  run_pipeline(result, PipelineScope::current(), 0, kAutodiff, nullptr);
  return result;
}

// Puts a node with more outputs in node's place. new_index: per old output its number in the new node.
NodePtr replace_node(Graph& graph, Node& node, ParamsPtr params, std::vector<NodeEntry> inputs,
                     std::vector<Ref<Subgraph>> bodies, const std::vector<uint32_t>& new_index, EntryMap& replaced) {
  const NodePtr self(&node);
  const NodePtr made = graph.add(*node.op, std::move(params), std::move(inputs), &node, std::move(bodies));
  made->attrs = node.attrs;
  for (uint32_t i = 0; i < new_index.size(); ++i) {
    replaced[{self, i}] = {made, new_index[i]};
    if (graph.contains(self.get()) && graph.is_used(*self, static_cast<int>(i)))
      graph.replace({self, i}, {made, new_index[i]});
  }
  return made;
}

// --------------------------------------------------------------------------------------------------------------- loops
// What both kinds of loops have in common: a body with slices, states and captured values.
struct Loop {
  size_t body = 0;                // number of the subgraph
  std::vector<int> sources;       // node input of each input of the body
  std::vector<int> state_inputs;  // input of the body per state
  std::vector<bool> is_slice;     // per input of the body
  int num_out_data = 0;
  int64_t rows = 0;  // of stacked outputs
  bool reverse = false;
  NodeEntry count;  // run-time number of iterations, null: `rows`
  int64_t truncate = 0, detach_every = 0;
  bool recompute = false;                   // keep the states of each iteration and what is marked, compute the rest
  std::function<ParamsPtr(int32_t)> widen;  // parameters of the same loop with more stacked outputs
};

class LoopGradient {
 public:
  LoopGradient(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads, const std::vector<bool>& wanted,
               Loop loop)
      : graph_(graph), node_(node), output_grads_(output_grads), wanted_(wanted), loop_(std::move(loop)) {}

  ControlGradient run() {
    result_.of_inputs.resize(node_.inputs.size());
    Graph body = prepared_body(graph_, node_, loop_.body);
    find_active(body);
    gradient_ = differentiate_body(std::move(body), wanted_inputs_, heads_, loop_.recompute);
    if (loop_.recompute && gradient_.split.num_residuals == 0)
      gradient_.split.forward = prepared_body(graph_, node_, loop_.body);
    if (std::all_of(gradient_.grad_of_input.begin(), gradient_.grad_of_input.end(), [](int g) { return g < 0; }))
      return std::move(result_);
    make_forward();
    make_backward();
    return std::move(result_);
  }

 private:
  size_t num_states() const { return loop_.state_inputs.size(); }
  int state_of_input(int input) const {
    const auto at = std::find(loop_.state_inputs.begin(), loop_.state_inputs.end(), input);
    return at == loop_.state_inputs.end() ? -1 : static_cast<int>(at - loop_.state_inputs.begin());
  }

  void find_active(const Graph& body) {
    for (size_t k = 0; k < loop_.sources.size(); ++k)
      wanted_inputs_.push_back(wanted_[static_cast<size_t>(loop_.sources[k])] &&
                               is_floating(body.inputs()[k]->specs[0].dtype));
    for (size_t i = 0; i < body.outputs().size(); ++i) heads_.push_back(static_cast<bool>(output_grads_[i].node));
    close_over_iterations(body, loop_.state_inputs, loop_.num_out_data, wanted_inputs_, heads_);
  }

  // The forward loop gives every value of an iteration that the backward one reads: beside what it gives anyway, as
  // further stacked outputs.
  void make_forward() {
    const SplitGraph& split = gradient_.split;
    const Graph& forward = split.forward;
    const size_t num_out_data = static_cast<size_t>(loop_.num_out_data), num_outputs = num_out_data + num_states();
    std::vector<NodeEntry> extra;
    stacked_of_source_.assign(split.sources.size(), -1);
    auto stack = [&](size_t source, const NodeEntry& entry) {
      const auto known = std::find(extra.begin(), extra.end(), entry);
      stacked_of_source_[source] = loop_.num_out_data + static_cast<int>(known - extra.begin());
      if (known == extra.end()) extra.push_back(entry);
    };
    for (size_t i = 0; i < split.sources.size(); ++i) {
      const BackwardInput& source = split.sources[i];
      const auto index = static_cast<size_t>(source.index);
      if (source.kind == Kind::kForwardInput && state_of_input(source.index) >= 0)
        stack(i, {forward.inputs()[index], 0});
      if (source.kind == Kind::kResidual) stack(i, forward.outputs()[num_outputs + index]);
      if (source.kind == Kind::kForwardOutput && source.index >= loop_.num_out_data) stack(i, forward.outputs()[index]);
      if (source.kind == Kind::kForwardOutput && source.index < loop_.num_out_data)
        stacked_of_source_[i] = source.index;
    }
    forward_ = NodePtr(&node_);
    if (extra.empty()) return;
    const auto first = forward.outputs().begin();
    std::vector<NodeEntry> outputs(first, first + static_cast<long>(num_out_data));
    outputs.insert(outputs.end(), extra.begin(), extra.end());
    outputs.insert(outputs.end(), first + static_cast<long>(num_out_data), first + static_cast<long>(num_outputs));

    const auto added = static_cast<uint32_t>(extra.size());
    std::vector<uint32_t> new_index;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) new_index.push_back(i < num_out_data ? i : i + added);
    std::vector<Ref<Subgraph>> bodies = node_.subgraphs;
    bodies[loop_.body] = freeze(forward, outputs);
    forward_ = replace_node(graph_, node_, loop_.widen(static_cast<int32_t>(added)), node_.inputs, std::move(bodies),
                            new_index, result_.replaced);
    if (loop_.count.node.get() == &node_) loop_.count = result_.replaced.at(loop_.count);
  }

  // ----------------------------------------------------------------------------------------------- the backward loop
  struct Carry {
    int state;  // of the forward loop
    NodePtr slot;
    NodeEntry initial, next;
  };
  struct Accumulator {
    int input;  // of the forward body
    NodePtr slot;
    NodeEntry next;
  };

  void make_backward() {
    Graph& backward = gradient_.split.backward;
    gradients_ = backward.outputs();
    bind_sources(backward);
    for (size_t s = 0; s < num_states(); ++s) add_carry(backward, static_cast<int>(s));
    if (loop_.detach_every > 0) detach(backward);
    if (loop_.truncate > 0 && loop_.truncate < loop_.rows) cut_rows();
    for (size_t k = 0; k < loop_.sources.size(); ++k)
      if (loop_.is_slice[k] && gradient_.grad_of_input[k] >= 0)
        stacked_outputs_.push_back(gradients_[static_cast<size_t>(gradient_.grad_of_input[k])]);
    for (size_t k = 0; k < loop_.sources.size(); ++k) {
      const int gradient = gradient_.grad_of_input[k];
      if (gradient < 0 || loop_.is_slice[k] || state_of_input(static_cast<int>(k)) >= 0) continue;
      NodeEntry rest;
      for (const NodeEntry& term : terms_of(gradients_[static_cast<size_t>(gradient)]))
        if (!sum_outside(backward, static_cast<int>(k), term)) rest = sum(backward, rest, term, nullptr);
      if (!rest.node) continue;
      const NodePtr slot = backward.add_input("sum", backward.spec(rest));
      accumulators_.push_back({static_cast<int>(k), slot, sum(backward, {slot, 0}, rest, nullptr)});
    }
    hand_out(add_loop(backward));
  }

  // ------------------------------------------------------------------------------------------- sums over iterations
  // A sum of products over the iterations is one product of stacked operands: one large product behind the loop instead
  // of a small one and a sum in each iteration.
  struct Stacked {
    NodeEntry outer;  // already a stacked value outside, or
    int output = -1;  // number among stacked_outputs_
    Shape row;
  };
  struct OutsideSum {
    int input;  // of the forward body
    ParamsPtr params;
    const Op* op;
    std::vector<Stacked> operands;
  };

  static void collect_terms(const NodeEntry& value, std::vector<NodeEntry>& terms) {
    const Node& node = *value.node;
    if (node.op == &kAdd.op()) {
      for (const NodeEntry& input : node.inputs) collect_terms(input, terms);
    } else {
      terms.push_back(value);
    }
  }
  static std::vector<NodeEntry> terms_of(const NodeEntry& value) {
    std::vector<NodeEntry> terms;
    collect_terms(value, terms);
    return terms;
  }

  static std::string attribute(const Node& node, const char* name) {
    const SchemaBase& schema = *node.op->schema;
    const int field = schema.find(name);
    return field < 0 ? std::string() : schema.get(node.params->data(), field).str();
  }

  // dot(a, b, transpose_a=True) of matrices, and sums over axis 0: both add up over the rows of their operands.
  static bool adds_over_rows(const Graph& body, const Node& node) {
    if (node.op == &kDot.op()) {
      return attribute(node, "transpose_a") == "True" && attribute(node, "transpose_b") == "False" &&
             body.spec(node.inputs[0]).shape.ndim() == 2 && body.spec(node.inputs[1]).shape.ndim() == 2;
    }
    return node.op == &kSum.op() && attribute(node, "axis") == "(0,)" && attribute(node, "keepdims") == "False" &&
           attribute(node, "exclude") == "False" && body.spec(node.inputs[0]).shape.ndim() == 2;
  }

  bool sum_outside(const Graph& backward, int input, const NodeEntry& term) {
    const Node& node = *term.node;
    if (loop_.count.node || node.is_variable() || !adds_over_rows(backward, node)) return false;
    OutsideSum made{input, node.params, node.op, {}};
    const size_t before = stacked_outputs_.size();
    for (const NodeEntry& operand : node.inputs) {
      std::optional<Stacked> stacked = stack(backward, operand, node.op == &kDot.op());
      if (!stacked) {
        stacked_outputs_.resize(before);
        return false;
      }
      made.operands.push_back(*stacked);
    }
    outside_sums_.push_back(std::move(made));
    return true;
  }

  // The values of an entry of all iterations; null where they would have to be copied for it.
  std::optional<Stacked> stack(const Graph& backward, const NodeEntry& entry, bool may_add) {
    const Shape& row = backward.spec(entry).shape;
    NodeEntry root = entry;
    while (!root.node->is_variable() && root.node->op->is_view && root.node->specs.size() == 1)
      root = root.node->inputs[0];
    for (const auto& [slot, data] : slices_)
      if (slot == root.node) return Stacked{data, -1, row};
    if (root.node->is_variable()) return std::nullopt;
    const auto known = std::find(stacked_outputs_.begin(), stacked_outputs_.end(), root);
    if (known == stacked_outputs_.end() && !may_add) return std::nullopt;
    const int output = static_cast<int>(known - stacked_outputs_.begin());
    if (known == stacked_outputs_.end()) stacked_outputs_.push_back(root);
    return Stacked{{}, output, row};
  }

  NodeEntry add_outside(const OutsideSum& one, const NodePtr& made) {
    std::vector<NodeEntry> operands;
    for (const Stacked& stacked : one.operands) {
      const NodeEntry rows =
          stacked.outer.node ? stacked.outer : NodeEntry{made, static_cast<uint32_t>(stacked.output)};
      Shape shape = stacked.row;
      shape[0] *= graph_.spec(rows).shape[0];
      operands.push_back(reshaped(graph_, rows, shape, &node_));
    }
    return {graph_.add(*one.op, one.params, std::move(operands), &node_), 0};
  }

  NodeEntry outer_input(int body_input) const {
    return node_.inputs[static_cast<size_t>(loop_.sources[static_cast<size_t>(body_input)])];
  }

  // Slices of vectors have shape (1,) in older graphs; here data gets a second axis instead.
  NodeEntry as_rows(const NodeEntry& data, const TensorSpec& slice) {
    Shape shape{graph_.spec(data).shape[0]};
    for (int64_t dim : slice.shape.dims()) shape.push_back(dim);
    return reshaped(graph_, data, shape, &node_);
  }

  void bind_sources(const Graph& backward) {
    const auto& sources = gradient_.split.sources;
    head_slot_.resize(num_states());
    for (size_t i = 0; i < sources.size(); ++i) {
      const NodePtr& slot = backward.inputs()[i];
      const TensorSpec& spec = slot->specs[0];
      if (sources[i].kind == Kind::kHead) {
        const int output = gradient_.output_of_head[static_cast<size_t>(sources[i].index)];
        if (output < loop_.num_out_data)
          slices_.push_back({slot, as_rows(output_grads_[static_cast<size_t>(output)], spec)});
        else
          head_slot_[static_cast<size_t>(output - loop_.num_out_data)] = slot;
      } else if (stacked_of_source_[i] >= 0) {
        slices_.push_back({slot, as_rows({forward_, static_cast<uint32_t>(stacked_of_source_[i])}, spec)});
      } else if (loop_.is_slice[static_cast<size_t>(sources[i].index)]) {
        slices_.push_back({slot, as_rows(outer_input(sources[i].index), spec)});
      } else {
        captured_.push_back({slot, outer_input(sources[i].index)});
      }
    }
  }

  void add_carry(Graph& backward, int state) {
    const auto s = static_cast<size_t>(state);
    const int gradient = gradient_.grad_of_input[static_cast<size_t>(loop_.state_inputs[s])];
    if (gradient < 0 && !head_slot_[s]) return;
    const TensorSpec& spec = node_.specs[static_cast<size_t>(loop_.num_out_data) + s];
    const NodeEntry arrived = output_grads_[static_cast<size_t>(loop_.num_out_data) + s];
    const NodePtr slot = head_slot_[s] ? head_slot_[s] : backward.add_input("state_gradient", spec);
    carries_.push_back({state, slot, arrived.node ? arrived : zeros(graph_, spec, &node_),
                        gradient >= 0 ? gradients_[static_cast<size_t>(gradient)] : zeros(backward, spec, nullptr)});
  }

  // Gradients of states stop where detach_every cuts the states off.
  void detach(Graph& backward) {
    NDArray mask = NDArray::empty(Shape{loop_.rows, 1}, DType::kFloat32);
    for (int64_t done = 0; done < loop_.rows; ++done) {
      const int64_t row = loop_.reverse ? loop_.rows - 1 - done : done;
      static_cast<float*>(mask.data())[row] = done % loop_.detach_every != 0 ? 1.0f : 0.0f;
    }
    const NodePtr passes = graph_.add_constant(Ref<Object>(mask.impl()), mask.spec());
    const NodePtr slot = backward.add_input("passes", {Shape{1}, DType::kFloat32});
    slices_.push_back({slot, {passes, 0}});
    for (Carry& carry : carries_) {
      const TensorSpec& spec = backward.spec(carry.next);
      Shape ones = Shape::scalar();
      for (int i = 0; i < spec.shape.ndim(); ++i) ones.push_back(1);
      NodeEntry condition = reshaped(backward, {slot, 0}, ones, nullptr);
      if (!(backward.spec(condition).shape == spec.shape))
        condition = emit(backward, kBroadcastTo, {condition}, {{"shape", spec.shape.str()}}, nullptr);
      carry.next = emit(backward, kWhere, {condition, carry.next, zeros(backward, spec, nullptr)}, {}, nullptr);
    }
  }

  // truncate_gradient: only the iterations that ran last.
  void cut_rows() {
    const int64_t begin = loop_.reverse ? 0 : loop_.rows - loop_.truncate;
    for (auto& [slot, data] : slices_) {
      data = emit(graph_, kSliceAxis, {data},
                  {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(begin + loop_.truncate)}},
                  &node_);
    }
  }

  NodePtr add_loop(const Graph& backward) {
    ForeachParams p;
    std::vector<NodeEntry> inputs;
    auto position = [&](const NodePtr& slot) {
      const auto at = std::find(backward.inputs().begin(), backward.inputs().end(), slot);
      return std::optional<int64_t>(at - backward.inputs().begin());
    };
    auto bind = [&](OptionalInts& locs, const NodePtr& slot, const NodeEntry& value) {
      locs.push_back(position(slot));
      inputs.push_back(value);
    };
    std::vector<NodeEntry> outputs = stacked_outputs_;
    p.num_out_data = static_cast<int32_t>(outputs.size());
    for (const auto& [slot, data] : slices_) bind(p.in_data_locs, slot, data);
    for (const Carry& carry : carries_) {
      bind(p.in_state_locs, carry.slot, carry.initial);
      outputs.push_back(carry.next);
    }
    for (const Accumulator& one : accumulators_) {
      bind(p.in_state_locs, one.slot, zeros(graph_, one.slot->specs[0], &node_));
      outputs.push_back(one.next);
    }
    for (const auto& [slot, value] : captured_) bind(p.remain_locs, slot, value);
    p.num_outputs = static_cast<int32_t>(outputs.size());
    p.reverse = !loop_.reverse;
    p.scalar_slices = true;
    if (slices_.empty()) p.length = loop_.truncate > 0 ? std::min(loop_.truncate, loop_.rows) : loop_.rows;
    if (loop_.count.node) {
      p.counted = true;
      inputs.push_back(loop_.count);
    }
    p.num_args = static_cast<int32_t>(inputs.size());
    const NodePtr made = graph_.add(OpRef("_foreach").op(), ParamSchema<ForeachParams>::box(std::move(p)),
                                    std::move(inputs), &node_, {freeze(backward, outputs)});
    made->name = node_.name + "_backward";
    if (loop_.recompute) mark_as_repeating(*made, node_);
    return made;
  }

  void hand_out(const NodePtr& made) {
    uint32_t output = 0;
    auto give = [&](int body_input, NodeEntry value) {
      const auto source = static_cast<size_t>(loop_.sources[static_cast<size_t>(body_input)]);
      result_.of_inputs[source] = sum(graph_, result_.of_inputs[source], value, &node_);
    };
    const bool truncated = loop_.truncate > 0 && loop_.truncate < loop_.rows;
    for (size_t k = 0; k < loop_.sources.size(); ++k) {
      if (!loop_.is_slice[k] || gradient_.grad_of_input[k] < 0) continue;
      NodeEntry value{made, output++};
      if (truncated) value = with_zero_rows(value);
      give(static_cast<int>(k), reshaped(graph_, value, graph_.spec(outer_input(static_cast<int>(k))).shape, &node_));
    }
    for (const OutsideSum& one : outside_sums_) give(one.input, add_outside(one, made));
    output = static_cast<uint32_t>(stacked_outputs_.size());
    for (const Carry& carry : carries_) {
      const NodeEntry value{made, output++};
      const int input = loop_.state_inputs[static_cast<size_t>(carry.state)];
      if (!truncated && gradient_.grad_of_input[static_cast<size_t>(input)] >= 0 &&
          wanted_[static_cast<size_t>(loop_.sources[static_cast<size_t>(input)])])
        give(input, value);
    }
    for (const Accumulator& one : accumulators_) give(one.input, {made, output++});
  }

  NodeEntry with_zero_rows(const NodeEntry& rows) {
    TensorSpec spec = graph_.spec(rows);
    spec.shape[0] = loop_.rows - loop_.truncate;
    const NodeEntry padding = zeros(graph_, spec, &node_);
    const std::vector<NodeEntry> parts =
        loop_.reverse ? std::vector<NodeEntry>{rows, padding} : std::vector<NodeEntry>{padding, rows};
    return emit(graph_, kConcat, parts, {{"dim", "0"}, {"num_args", "2"}}, &node_);
  }

  Graph& graph_;
  Node& node_;
  const std::vector<NodeEntry>& output_grads_;
  const std::vector<bool>& wanted_;
  Loop loop_;
  std::vector<bool> wanted_inputs_, heads_;
  BodyGradient gradient_;
  std::vector<int>
      stacked_of_source_;  // per source of the backward body: number of the forward loop's output, -1: none
  NodePtr forward_;
  std::vector<NodeEntry> gradients_;                              // outputs of the backward body
  std::vector<std::pair<NodePtr, NodeEntry>> slices_, captured_;  // slot of the backward body, value outside
  std::vector<NodePtr> head_slot_;                                // per state
  std::vector<Carry> carries_;
  std::vector<Accumulator> accumulators_;
  std::vector<NodeEntry> stacked_outputs_;  // of the backward body: gradients of slices, then what is summed outside
  std::vector<OutsideSum> outside_sums_;
  ControlGradient result_;
};

template <typename P>
std::function<ParamsPtr(int32_t)> widen_params(const Node& node) {
  return [&node](int32_t added) {
    P p = params_of<P>(node);
    p.num_out_data += added;
    p.num_outputs += added;
    return ParamSchema<P>::box(std::move(p));
  };
}

Loop loop_of_foreach(const Graph& graph, const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  Loop loop;
  loop.sources = body_sources(node, 0);
  loop.state_inputs = to_ints(p.in_state_locs);
  loop.is_slice.assign(loop.sources.size(), false);
  for (int at : to_ints(p.in_data_locs)) loop.is_slice[static_cast<size_t>(at)] = true;
  loop.num_out_data = p.num_out_data;
  loop.rows = p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
  loop.reverse = p.reverse;
  if (p.counted) loop.count = node.inputs.back();
  loop.truncate = p.truncate_gradient;
  loop.detach_every = p.detach_every;
  loop.recompute = p.checkpoint == kRecompute || p.checkpoint == kPolicy;
  loop.widen = widen_params<ForeachParams>(node);
  return loop;
}

// A loop with a condition goes back as many iterations as it went, which its last output tells.
Loop loop_of_while(const Node& node) {
  const auto& p = params_of<WhileLoopParams>(node);
  if (p.unbounded) {
    throw GradientError(
        {.op = node.op->name,
         .node = node.name,
         .message = "no gradient of a loop without max_iterations",
         .because = "the values of each iteration are kept for the gradient, and how many there are is not known",
         .fix = "pass max_iterations as an int",
         .where = node.where});
  }
  Loop loop;
  loop.body = 1;
  loop.sources = body_sources(node, 1);
  loop.state_inputs = to_ints(p.func_var_locs);
  loop.is_slice.assign(loop.sources.size(), false);
  loop.num_out_data = p.num_out_data;
  loop.rows = p.max_iterations;
  loop.recompute = !p.checkpoint.empty();
  loop.count = {NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(node.specs.size()) - 1};
  loop.widen = widen_params<WhileLoopParams>(node);
  return loop;
}

// ---------------------------------------------------------------------------------------------------------------- cond
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

ControlGradient differentiate_control(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                      const std::vector<bool>& wanted) {
  switch (control_kind(node)) {
    case ControlKind::kForeach:
      return LoopGradient(graph, node, output_grads, wanted, loop_of_foreach(graph, node)).run();
    case ControlKind::kWhileLoop:
      return LoopGradient(graph, node, output_grads, wanted, loop_of_while(node)).run();
    default:
      return CondGradient(graph, node, output_grads, wanted).run();
  }
}

}  // namespace hybridnet
