#include "passes/loops/loop_gradient.h"

#include <algorithm>
#include <optional>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "hybridnet/ndarray.h"
#include "passes/body_gradient.h"
#include "passes/gradient_nodes.h"
#include "passes/loops/checkpoint_loops.h"
#include "passes/loops/iteration_sums.h"
#include "passes/loops/repeated_loops.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kConcat{"Concat"}, kWhere{"where"}, kBroadcastTo{"broadcast_to"},
    kRowsBefore{"_rows_before"};

using Kind = BackwardInput::Kind;

bool takes_part(const Node& node) {
  static const OpRef kParts[] = {OpRef("slice_axis"), OpRef("slice"),     OpRef("SliceChannel"),
                                 OpRef("_split_v2"),  OpRef("transpose"), OpRef("SwapAxis")};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](const OpRef& op) { return node.op == &op.op(); });
}

// What a view shows.
NodeEntry root_of(NodeEntry entry) {
  while (!entry.node->is_variable() && entry.node->op->is_view && entry.node->specs.size() == 1)
    entry = NodeEntry(entry.node->inputs[0]);
  return entry;
}

class LoopGradient {
 public:
  LoopGradient(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads, const std::vector<bool>& wanted,
               Loop loop)
      : graph_(graph), node_(node), output_grads_(output_grads), wanted_(wanted), loop_(std::move(loop)) {}

  ControlGradient run() {
    result_.of_inputs.resize(node_.inputs.size());
    Graph body = prepared_body(graph_, node_, loop_.body);
    make_parts_again(body);
    find_active(body);
    gradient_ = differentiate_body(std::move(body), wanted_inputs_, heads_, loop_.recompute);
    if (loop_.recompute && gradient_.split.num_residuals == 0)
      gradient_.split.forward = prepared_body(graph_, node_, loop_.body);
    if (!has_gradients()) return std::move(result_);
    make_forward();
    make_backward();
    return std::move(result_);
  }

 private:
  bool has_gradients() const {
    for (int gradient : gradient_.grad_of_input)
      if (gradient >= 0) return true;
    for (size_t s = 0; s < num_states(); ++s)
      if (may_pass(s)) return true;
    return false;
  }

  size_t first_state() const { return static_cast<size_t>(loop_.num_out_data); }
  size_t num_states() const { return loop_.state_inputs.size(); }
  const NodeEntry& arrived_at_state(size_t s) const {
    return output_grads_[static_cast<size_t>(loop_.num_out_data) + s];
  }
  // May the gradient of a final state be that of the initial one, because no iteration runs?
  bool may_pass(size_t s) const {
    const auto input = static_cast<size_t>(loop_.state_inputs[s]);
    return (loop_.count.node || loop_.rows == 0) && arrived_at_state(s).node &&
           wanted_[static_cast<size_t>(loop_.sources[input])] &&
           is_floating(graph_.spec(node_.inputs[static_cast<size_t>(loop_.sources[input])]).dtype);
  }
  int state_of_input(int input) const {
    const auto at = std::find(loop_.state_inputs.begin(), loop_.state_inputs.end(), input);
    return at == loop_.state_inputs.end() ? -1 : static_cast<int>(at - loop_.state_inputs.begin());
  }

  // Parts of slices and of captured values cost no more to make again than to keep and to read.
  void make_parts_again(const Graph& body) {
    std::vector<bool> is_state(loop_.sources.size());
    for (int input : loop_.state_inputs) is_state[static_cast<size_t>(input)] = true;
    for (Node* node : body.order()) {
      if (node->is_variable() || !takes_part(*node)) continue;
      const int input = body.input_index(root_of(node->inputs[0]).node.get());
      if (input >= 0 && !is_state[static_cast<size_t>(input)]) node->attrs[kCheapAttribute] = "1";
    }
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
    forward_ = NodePtr(&node_);
    const std::vector<NodeEntry> extra = choose_stacked();
    if (extra.empty()) return;
    const Graph& forward = gradient_.split.forward;
    const auto first = forward.outputs().begin();
    const auto num_outputs = static_cast<long>(first_state() + num_states());
    std::vector<NodeEntry> outputs(first, first + static_cast<long>(first_state()));
    outputs.insert(outputs.end(), extra.begin(), extra.end());
    outputs.insert(outputs.end(), first + static_cast<long>(first_state()), first + num_outputs);

    const auto added = static_cast<uint32_t>(extra.size());
    std::vector<uint32_t> new_index;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) new_index.push_back(i < first_state() ? i : i + added);
    std::vector<Ref<Subgraph>> bodies = node_.subgraphs;
    bodies[loop_.body] = freeze(forward, outputs);
    forward_ = replace_node(graph_, node_, loop_.widen(static_cast<int32_t>(added)), node_.inputs, std::move(bodies),
                            new_index, result_.replaced);
    if (loop_.count.node.get() == &node_) loop_.count = result_.replaced.at(loop_.count);
  }

  // Which output of the forward loop holds each value that the backward body reads; returns the outputs to be added.
  std::vector<NodeEntry> choose_stacked() {
    const SplitGraph& split = gradient_.split;
    std::vector<NodeEntry> extra;
    rows_of_source_.assign(split.sources.size(), {});
    auto stack = [&](size_t source, const NodeEntry& entry) {
      const auto known = std::find(extra.begin(), extra.end(), entry);
      rows_of_source_[source].output = loop_.num_out_data + static_cast<int>(known - extra.begin());
      if (known == extra.end()) extra.push_back(entry);
    };
    for (size_t i = 0; i < split.sources.size(); ++i) {
      const BackwardInput& source = split.sources[i];
      const auto index = static_cast<size_t>(source.index);
      if (source.kind == Kind::kResidual)
        stack(i, split.forward.outputs()[first_state() + num_states() + index]);
      else if (source.kind == Kind::kForwardOutput && index >= first_state())
        stack(i, split.forward.outputs()[index]);
      else if (source.kind == Kind::kForwardOutput)
        rows_of_source_[i].output = source.index;
    }
    for (size_t i = 0; i < split.sources.size(); ++i) {
      const BackwardInput& source = split.sources[i];
      if (source.kind != Kind::kForwardInput || state_of_input(source.index) < 0) continue;
      const int rows = rows_of_next(static_cast<size_t>(state_of_input(source.index)), extra);
      if (rows >= 0)
        rows_of_source_[i] = {rows, true};
      else
        stack(i, {split.forward.inputs()[static_cast<size_t>(source.index)], 0});
    }
    return extra;
  }

  // The output that stacks what a state becomes: what the next iteration gets. -1: none does.
  int rows_of_next(size_t state, const std::vector<NodeEntry>& extra) const {
    // Where states are cut off, what an iteration gets is another value for derivatives than what the one before made.
    if (loop_.rows == 0 || loop_.detach_every > 0) return -1;
    const auto& outputs = gradient_.split.forward.outputs();
    const NodeEntry& next = outputs[first_state() + state];
    const auto known = std::find(outputs.begin(), outputs.begin() + static_cast<long>(first_state()), next);
    if (known != outputs.begin() + static_cast<long>(first_state())) return static_cast<int>(known - outputs.begin());
    const auto added = std::find(extra.begin(), extra.end(), next);
    return added == extra.end() ? -1 : loop_.num_out_data + static_cast<int>(added - extra.begin());
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
    if (loop_.recompute) silence_limits(backward);
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
      for (const NodeEntry& term : IterationSums::terms_of(gradients_[static_cast<size_t>(gradient)])) {
        const bool taken =
            !loop_.count.node && outside_sums_.take(backward, static_cast<int>(k), term, slices_, stacked_outputs_);
        if (!taken) rest = sum(backward, rest, term, nullptr);
      }
      if (!rest.node) continue;
      const NodePtr slot = backward.add_input("sum", backward.spec(rest));
      accumulators_.push_back({static_cast<int>(k), slot, sum(backward, {slot, 0}, rest, nullptr)});
    }
    hand_out(add_loop(backward));
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

  // What the iterations got that gave these rows: the initial value, and all rows but the last. Made when it is needed,
  // so that the rows are kept once.
  NodeEntry rows_before(const NodeEntry& rows, const NodeEntry& initial) const {
    Shape shape = graph_.spec(rows).shape;
    shape[0] = 1;
    const NodeEntry first = reshaped(graph_, initial, shape, &node_);
    if (loop_.rows == 1) return first;
    const NodeEntry whole =
        emit(graph_, kRowsBefore, {rows, first}, {{"reverse", loop_.reverse ? "True" : "False"}}, &node_);
    whole.node->attrs[kCheapAttribute] = "1";
    return whole;
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
      } else if (rows_of_source_[i].output >= 0) {
        const NodeEntry rows = as_rows({forward_, static_cast<uint32_t>(rows_of_source_[i].output)}, spec);
        slices_.push_back({slot, rows_of_source_[i].before ? rows_before(rows, outer_input(sources[i].index)) : rows});
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
    if (gradient < 0 && !head_slot_[s] && !may_pass(s)) return;
    const TensorSpec& spec = node_.specs[static_cast<size_t>(loop_.num_out_data) + s];
    const NodeEntry arrived = arrived_at_state(s);
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
    if (loop_.recompute) p.checkpoint = kRecompute;  // further derivatives keep as little
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
    for (const auto& [input, value] : outside_sums_.add(graph_, made, node_)) give(input, value);
    output = static_cast<uint32_t>(stacked_outputs_.size());
    for (const Carry& carry : carries_) {
      const NodeEntry value{made, output++};
      const int input = loop_.state_inputs[static_cast<size_t>(carry.state)];
      const bool has_gradient =
          gradient_.grad_of_input[static_cast<size_t>(input)] >= 0 || may_pass(static_cast<size_t>(carry.state));
      if (!truncated && has_gradient && wanted_[static_cast<size_t>(loop_.sources[static_cast<size_t>(input)])])
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
  struct Rows {
    int output = -1;      // of the forward loop; -1: none
    bool before = false;  // what the iterations got that gave them
  };
  std::vector<Rows> rows_of_source_;  // per source of the backward body
  NodePtr forward_;
  std::vector<NodeEntry> gradients_;                              // outputs of the backward body
  std::vector<std::pair<NodePtr, NodeEntry>> slices_, captured_;  // slot of the backward body, value outside
  std::vector<NodePtr> head_slot_;                                // per state
  std::vector<Carry> carries_;
  std::vector<Accumulator> accumulators_;
  std::vector<NodeEntry> stacked_outputs_;  // of the backward body: gradients of slices, then what is summed outside
  IterationSums outside_sums_;
  ControlGradient result_;
};

}  // namespace

ControlGradient differentiate_loop(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted, Loop loop) {
  return LoopGradient(graph, node, output_grads, wanted, std::move(loop)).run();
}

}  // namespace hybridnet
