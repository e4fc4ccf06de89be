#include "passes/loops/loop_gradient.h"

#include <algorithm>
#include <optional>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "hybridnet/ndarray.h"
#include "passes/gradient/body_gradient.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/absent_gradients.h"
#include "passes/loops/checkpoint_loops.h"
#include "passes/loops/iteration_sums.h"
#include "passes/loops/repeated_loops.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kConcat{"Concat"}, kRowsBefore{"_rows_before"}, kMultiply{"elemwise_mul"},
    kNotZero{"_not_equal_scalar"}, kMax{"max"}, kCast{"Cast"}, kOnes{"_ones"};

using Kind = BackwardInput::Kind;

bool takes_part(const Node& node) {
  static const OpRef kParts[] = {OpRef("slice_axis"), OpRef("slice"),     OpRef("SliceChannel"),
                                 OpRef("_split_v2"),  OpRef("transpose"), OpRef("SwapAxis")};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](const OpRef& op) { return node.op == &op.op(); });
}

class LoopGradient {
 public:
  LoopGradient(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads, const std::vector<bool>& wanted)
      : graph_(graph),
        node_(node),
        output_grads_(output_grads),
        wanted_(wanted),
        loop_(loop_of(node)),
        body_number_(node.subgraphs.size() - 1),
        recompute_(loop_.checkpoint == kRecompute || loop_.checkpoint == kPolicy) {
    if (control_kind(node) == ControlKind::kForeach) {
      rows_ = rows_of(graph, node);
      if (loop_.counted) count_ = node.inputs.back();
    } else {
      rows_ = *loop_.max_iterations;
      count_ = {NodePtr(&node), static_cast<uint32_t>(node.specs.size()) - 1};
    }
  }

  ControlGradient run() {
    result_.of_inputs.resize(node_.inputs.size());
    Graph body = prepared_body(graph_, node_, body_number_);
    make_parts_again(body);
    find_active(body);
    gradient_ = differentiate(std::move(body));
    if (recompute_ && gradient_.split.num_residuals == 0)
      gradient_.split.forward = prepared_body(graph_, node_, body_number_);
    if (!has_gradients()) return std::move(result_);
    make_forward();
    make_backward();
    return std::move(result_);
  }

 private:
  BodyGradient differentiate(Graph body) const {
    const PipelineScope scope(node_, body_number_);
    return differentiate_body(std::move(body), wanted_inputs_, heads_, recompute_, &loop_);
  }

  bool has_gradients() const {
    for (int gradient : gradient_.grad_of_input)
      if (gradient >= 0) return true;
    for (size_t s = 0; s < loop_.carries(); ++s)
      if (may_pass(s)) return true;
    return false;
  }

  bool is_carry(size_t slot) const { return slot >= loop_.seqs() && slot < loop_.first_invariant(); }
  const NodeEntry& arrived_at_carry(size_t s) const { return output_grads_[loop_.final_carry(s)]; }
  // True if the gradient of a final value may be the gradient of the initial one, because no iteration may run.
  bool may_pass(size_t s) const {
    return (count_.node || rows_ == 0) && arrived_at_carry(s).node && wanted_[loop_.carry(s)] &&
           is_floating(graph_.spec(node_.inputs[loop_.carry(s)]).dtype);
  }

  // Marks parts of slices and of captured values: they cost no more to make again than to keep and to read.
  void make_parts_again(const Graph& body) {
    for (Node* node : body.order()) {
      if (node->is_variable() || !takes_part(*node)) continue;
      const int input = body.input_index(behind_views(node->inputs[0]).node.get());
      if (input >= 0 && !is_carry(static_cast<size_t>(input))) node->attrs[kCheapAttribute] = "1";
    }
  }

  void find_active(const Graph& body) {
    for (size_t k = 0; k < loop_.slots(); ++k)
      wanted_inputs_.push_back(wanted_[k] && is_floating(body.inputs()[k]->specs[0].dtype));
    for (size_t i = 0; i < body.outputs().size(); ++i) heads_.push_back(static_cast<bool>(output_grads_[i].node));
    close_over_iterations(body, loop_, wanted_inputs_, heads_);
  }

  // Makes the forward loop return every value of an iteration that the backward one reads, as further stacked outputs.
  void make_forward() {
    forward_ = NodePtr(&node_);
    const std::vector<NodeEntry> extra = choose_stacked();
    if (extra.empty()) return;
    const Graph& forward = gradient_.split.forward;
    const auto first = forward.outputs().begin();
    const auto first_carry = static_cast<long>(loop_.outs()), end = first_carry + loop_.num_carry;
    std::vector<NodeEntry> outputs(first, first + first_carry);
    outputs.insert(outputs.end(), extra.begin(), extra.end());
    outputs.insert(outputs.end(), first + first_carry, first + end);

    const auto added = static_cast<uint32_t>(extra.size());
    std::vector<uint32_t> new_index;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) new_index.push_back(i < loop_.outs() ? i : i + added);
    std::vector<Ref<Subgraph>> bodies = node_.subgraphs;
    bodies[body_number_] = freeze(forward, outputs);
    LoopSpec widened = loop_;
    widened.num_out += static_cast<int32_t>(added);
    forward_ = replace_node(graph_, node_, boxed(std::move(widened)), node_.inputs, std::move(bodies), new_index,
                            result_.replaced);
    if (count_.node.get() == &node_) count_ = result_.replaced.at(count_);
  }

  // Chooses the output of the forward loop that holds each value the backward body reads; returns the outputs to add.
  std::vector<NodeEntry> choose_stacked() {
    const SplitGraph& split = gradient_.split;
    std::vector<NodeEntry> extra;
    rows_of_source_.assign(split.sources.size(), {});
    auto stack = [&](size_t source, const NodeEntry& entry) {
      const auto known = std::find(extra.begin(), extra.end(), entry);
      rows_of_source_[source].output = loop_.num_out + static_cast<int>(known - extra.begin());
      if (known == extra.end()) extra.push_back(entry);
    };
    for (size_t i = 0; i < split.sources.size(); ++i) {
      const BackwardInput& source = split.sources[i];
      const auto index = static_cast<size_t>(source.index);
      if (source.kind == Kind::kResidual)
        stack(i, split.forward.outputs()[loop_.final_carry(loop_.carries()) + index]);
      else if (source.kind == Kind::kForwardOutput && index >= loop_.outs())
        stack(i, split.forward.outputs()[index]);
      else if (source.kind == Kind::kForwardOutput)
        rows_of_source_[i].output = source.index;
    }
    for (size_t i = 0; i < split.sources.size(); ++i) {
      const BackwardInput& source = split.sources[i];
      const auto slot = static_cast<size_t>(source.index);
      if (source.kind != Kind::kForwardInput || !is_carry(slot)) continue;
      const int rows = rows_of_next(slot - loop_.seqs(), extra);
      if (rows >= 0)
        rows_of_source_[i] = {rows, true};
      else
        stack(i, {split.forward.inputs()[slot], 0});
    }
    return extra;
  }

  // The output that stacks the next values of a carry, which the next iteration reads; -1: none does.
  int rows_of_next(size_t carry, const std::vector<NodeEntry>& extra) const {
    // If carries are cut off, derivatives must not take the input of an iteration for the output of the one before.
    if (rows_ == 0 || loop_.detach_every > 0) return -1;
    const auto& outputs = gradient_.split.forward.outputs();
    const NodeEntry& next = outputs[loop_.final_carry(carry)];
    const auto first_carry = outputs.begin() + loop_.num_out;
    const auto known = std::find(outputs.begin(), first_carry, next);
    if (known != first_carry) return static_cast<int>(known - outputs.begin());
    const auto added = std::find(extra.begin(), extra.end(), next);
    return added == extra.end() ? -1 : loop_.num_out + static_cast<int>(added - extra.begin());
  }

  // ---------------------------------------------------------------------------------------------- the backward loop
  // The slot of a carry of the backward loop, and its next value.
  struct Carry {
    size_t of;  // slot of the forward loop
    LoopView::Slot slot;
    NodeEntry next;
  };

  void make_backward() {
    LoopSpec spec;
    spec.reverse = !loop_.reverse;
    spec.scalar_slices = true;
    if (recompute_) spec.checkpoint = kRecompute;  // further derivatives keep as little
    spec.draw_offset = loop_.draw_offset + first_row() * loop_.draw_stride;
    spec.draw_stride = loop_.draw_stride;
    back_.emplace(std::move(gradient_.split.backward), std::move(spec),
                  is_truncated() ? loop_.truncate_gradient : rows_);
    Graph& backward = back_->body;
    if (count_.node) back_->count = count_;
    if (recompute_) silence_limits(backward);
    gradients_ = backward.outputs();
    bind_sources();
    AbsentGradients absent = find_absent();
    for (size_t s = 0; s < loop_.carries(); ++s) add_carry(s);
    add_flags(absent);
    if (loop_.detach_every > 0) detach();
    if (is_truncated()) cut_rows();
    for (size_t k = 0; k < loop_.seqs(); ++k)
      if (gradient_.grad_of_input[k] >= 0)
        stacked_outputs_.push_back(gradients_[static_cast<size_t>(gradient_.grad_of_input[k])]);
    for (size_t k = loop_.first_invariant(); k < loop_.slots(); ++k) {
      const int gradient = gradient_.grad_of_input[k];
      if (gradient < 0) continue;
      NodeEntry rest;
      for (const NodeEntry& term : IterationSums::terms_of(gradients_[static_cast<size_t>(gradient)])) {
        const bool taken = outside_sums_.take(backward, static_cast<int>(k), term, back_->data, stacked_outputs_,
                                              static_cast<bool>(count_.node));
        if (!taken) rest = sum(backward, rest, term, nullptr);
      }
      if (!rest.node) continue;
      const NodePtr slot = backward.add_input("sum", backward.spec(rest));
      accumulators_.push_back(
          {k, {zeros(graph_, slot->specs[0], &node_), slot, nullptr}, sum(backward, {slot, 0}, rest, nullptr)});
    }
    hand_out(add_loop());
  }

  // The first of the rows that gradients go through.
  int64_t first_row() const { return is_truncated() && !loop_.reverse ? rows_ - loop_.truncate_gradient : 0; }
  bool is_truncated() const { return loop_.truncate_gradient > 0 && loop_.truncate_gradient < rows_; }

  // Slices of vectors have shape (1,) in older graphs; then data gets a second axis.
  NodeEntry as_rows(const NodeEntry& data, const TensorSpec& slice) {
    Shape shape{graph_.spec(data).shape[0]};
    for (int64_t dim : slice.shape.dims()) shape.push_back(dim);
    return reshaped(graph_, data, shape, &node_);
  }

  // The inputs of the iterations that produced these rows: the initial value, and all rows but the last. Computed where
  // it is read, so that the rows are kept once.
  NodeEntry rows_before(const NodeEntry& rows, const NodeEntry& initial) const {
    Shape shape = graph_.spec(rows).shape;
    shape[0] = 1;
    const NodeEntry first = reshaped(graph_, initial, shape, &node_);
    if (rows_ == 1) return first;
    const NodeEntry whole =
        emit(graph_, kRowsBefore, {rows, first}, {{"reverse", loop_.reverse ? "True" : "False"}}, &node_);
    whole.node->attrs[kCheapAttribute] = "1";
    return whole;
  }

  void bind_sources() {
    const auto& sources = gradient_.split.sources;
    head_slot_.resize(loop_.carries());
    for (size_t i = 0; i < sources.size(); ++i) {
      const NodePtr& slot = back_->body.inputs()[i];
      const TensorSpec& spec = slot->specs[0];
      const auto index = static_cast<size_t>(sources[i].index);
      if (sources[i].kind == Kind::kHead) {
        const auto output = static_cast<size_t>(gradient_.output_of_head[index]);
        if (output < loop_.outs()) {
          back_->data.push_back({as_rows(output_grads_[output], spec), slot, nullptr});
          row_heads_.push_back(slot);
        } else {
          head_slot_[output - loop_.outs()] = slot;
        }
      } else if (rows_of_source_[i].output >= 0) {
        const NodeEntry rows = as_rows({forward_, static_cast<uint32_t>(rows_of_source_[i].output)}, spec);
        back_->data.push_back(
            {rows_of_source_[i].before ? rows_before(rows, node_.inputs[index]) : rows, slot, nullptr});
      } else if (index < loop_.seqs()) {
        back_->data.push_back({as_rows(node_.inputs[index], spec), slot, nullptr});
      } else {
        back_->captured.push_back({node_.inputs[index], slot, nullptr});
      }
    }
  }

  void add_carry(size_t s) {
    Graph& backward = back_->body;
    const int gradient = gradient_.grad_of_input[loop_.carry(s)];
    if (gradient < 0 && !head_slot_[s] && !may_pass(s)) return;
    const TensorSpec& spec = node_.specs[loop_.final_carry(s)];
    const NodeEntry arrived = arrived_at_carry(s);
    const NodePtr slot = head_slot_[s] ? head_slot_[s] : backward.add_input("state_gradient", spec);
    carries_.push_back({loop_.carry(s),
                        {arrived.node ? arrived : zeros(graph_, spec, &node_), slot, nullptr},
                        gradient >= 0 ? gradients_[static_cast<size_t>(gradient)] : zeros(backward, spec, nullptr)});
  }

  // The last value of a state that nothing reads has no gradient. In the body of another loop a gradient may arrive in
  // some iterations of that loop only: in the others it is zeros. (If no row has a gradient, the outer loop handles
  // it.)
  AbsentGradients find_absent() {
    const bool is_inside = !PipelineScope::current().place.empty() && !row_heads_.empty();
    std::vector<AbsentGradients::State> states;
    for (size_t s = 0; s < loop_.carries(); ++s) {
      const int gradient = gradient_.grad_of_input[loop_.carry(s)];
      const NodeEntry arrived = arrived_at_carry(s);
      states.push_back({.head = head_slot_[s],
                        .next = gradient >= 0 ? gradients_[static_cast<size_t>(gradient)] : NodeEntry(),
                        .arrives = static_cast<bool>(arrived.node),
                        .arrived = is_inside ? arrived : NodeEntry()});
    }
    AbsentGradients absent(back_->body, std::move(states), row_heads_, loop_.detach_every > 0);
    absent.mask(gradients_);
    return absent;
  }

  void add_flags(AbsentGradients& absent) {
    for (size_t s = 0; s < loop_.carries(); ++s) {
      const AbsentGradients::State& state = absent.states()[s];
      if (!state.flag) continue;
      flags_.push_back({loop_.carry(s), {first_flag(state), state.flag->node, nullptr}, absent.next_flag(s)});
    }
  }

  NodeEntry first_flag(const AbsentGradients::State& state) {
    const TensorSpec flag{Shape{1}, DType::kFloat32};
    if (!state.arrives) return zeros(graph_, flag, &node_);
    if (!state.arrived.node || graph_.spec(state.arrived).shape.size() == 0)
      return emit(graph_, kOnes, {}, {{"shape", "(1,)"}}, &node_);
    const NodeEntry is_there = emit(graph_, kNotZero, {state.arrived}, {{"scalar", "0"}}, &node_);
    const NodeEntry any = emit(graph_, kMax, {is_there}, {}, &node_);
    return reshaped(graph_, emit(graph_, kCast, {any}, {{"dtype", "float32"}}, &node_), flag.shape, &node_);
  }

  // Gradients of carries stop where detach_every cuts the carries off.
  void detach() {
    Graph& backward = back_->body;
    NDArray mask = NDArray::empty(Shape{rows_, 1}, DType::kFloat32);
    for (int64_t done = 0; done < rows_; ++done) {
      const int64_t row = loop_.reverse ? rows_ - 1 - done : done;
      static_cast<float*>(mask.data())[row] = done % loop_.detach_every != 0 ? 1.0f : 0.0f;
    }
    const NodePtr passes = graph_.add_constant(Ref<Object>(mask.impl()), mask.spec());
    const NodeEntry slot{back_->add_sequence({passes, 0}, {Shape{1}, DType::kFloat32}, "passes").inner, 0};
    for (Carry& carry : carries_) carry.next = kept_where(backward, slot, carry.next);
    for (Carry& flag : flags_) flag.next = emit(backward, kMultiply, {slot, flag.next}, {}, nullptr);
  }

  // truncate_gradient: keeps only the iterations that ran last.
  void cut_rows() {
    const int64_t begin = first_row();
    for (LoopView::Slot& slot : back_->data) {
      slot.outer = emit(
          graph_, kSliceAxis, {slot.outer},
          {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(begin + loop_.truncate_gradient)}},
          &node_);
    }
  }

  NodePtr add_loop() {
    for (const NodeEntry& value : stacked_outputs_) back_->outs.push_back({back_->output_of(value), -1});
    for (const std::vector<Carry>* list : {&carries_, &accumulators_, &flags_})
      for (const Carry& carry : *list) back_->carries.push_back({carry.slot, back_->output_of(carry.next), -1});
    const NodePtr made = back_->put_together(graph_, node_);
    made->attrs.clear();
    made->name = node_.name + "_backward";
    if (recompute_ || is_random(*made)) mark_as_repeating(*made, node_);  // same draws as the forward loop
    return made;
  }

  void hand_out(const NodePtr& made) {
    auto give = [&](size_t slot, const NodeEntry& value) {
      result_.of_inputs[slot] = sum(graph_, result_.of_inputs[slot], value, &node_);
    };
    size_t output = 0;
    for (size_t k = 0; k < loop_.seqs(); ++k) {
      if (gradient_.grad_of_input[k] < 0) continue;
      NodeEntry value = back_->out(made, output++);
      if (is_truncated()) value = with_zero_rows(value);
      give(k, reshaped(graph_, value, graph_.spec(node_.inputs[k]).shape, &node_));
    }
    for (const auto& [slot, value] : outside_sums_.add(graph_, made, node_)) give(static_cast<size_t>(slot), value);
    output = 0;
    for (const Carry& carry : carries_) {
      const NodeEntry value = back_->final_carry(made, output++);
      const bool has_gradient = gradient_.grad_of_input[carry.of] >= 0 || may_pass(carry.of - loop_.seqs());
      if (!is_truncated() && has_gradient && wanted_[carry.of]) give(carry.of, value);
    }
    for (const Carry& one : accumulators_) give(one.of, back_->final_carry(made, output++));
  }

  NodeEntry with_zero_rows(const NodeEntry& rows) {
    TensorSpec spec = graph_.spec(rows);
    spec.shape[0] = rows_ - loop_.truncate_gradient;
    const NodeEntry padding = zeros(graph_, spec, &node_);
    const std::vector<NodeEntry> parts =
        loop_.reverse ? std::vector<NodeEntry>{rows, padding} : std::vector<NodeEntry>{padding, rows};
    return emit(graph_, kConcat, parts, {{"dim", "0"}, {"num_args", "2"}}, &node_);
  }

  Graph& graph_;
  Node& node_;
  const std::vector<NodeEntry>& output_grads_;
  const std::vector<bool>& wanted_;
  const LoopSpec loop_;
  const size_t body_number_;
  const bool recompute_;  // keep the carries of each iteration and marked values, compute the rest
  int64_t rows_ = 0;      // number of rows of stacked outputs
  NodeEntry count_;       // run-time number of iterations, null: `rows_`
  std::vector<bool> wanted_inputs_, heads_;
  BodyGradient gradient_;
  struct Rows {
    int output = -1;      // output of the forward loop; -1: none
    bool before = false;  // the inputs of the iterations that produced them
  };
  std::vector<Rows> rows_of_source_;  // per source of the backward body
  NodePtr forward_;
  std::optional<LoopView> back_;
  std::vector<NodeEntry> gradients_;  // outputs of the backward body
  std::vector<NodePtr> row_heads_;    // inputs of the backward body for gradients of stacked outputs
  std::vector<NodePtr> head_slot_;    // per carry
  std::vector<Carry> carries_, accumulators_, flags_;
  std::vector<NodeEntry> stacked_outputs_;  // the backward body's: gradients of slices, then operands of outside sums
  IterationSums outside_sums_;
  ControlGradient result_;
};

}  // namespace

ControlGradient differentiate_loop(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted) {
  if (control_kind(node) == ControlKind::kWhileLoop && !is_bounded_for_gradient(loop_of(node))) {
    throw UnboundedLoopError(
        {.op = node.op->name,
         .node = node.name,
         .message = "a loop without max_iterations, or with a very large one, has no compiled gradient",
         .because = "the values of each iteration are kept for the gradient, and the number of iterations is not known",
         .fix = "pass a smaller max_iterations as an int, or checkpoint=",
         .where = node.where});
  }
  return LoopGradient(graph, node, output_grads, wanted).run();
}

}  // namespace hybridnet
