// Runs a loop with a condition in segments. Unlike for a loop over data, the number of iterations is not known in
// advance, so a number of segments that suits max_iterations may be thousands; these are again cut into segments of
// segments, so that all loops together keep at most kMaxKept copies of the variables:
//
//   while (left > 0) {            outer
//     while (left > 0) {          inner, `levels` - 1 of them
//       while (cond and left > 0) a segment: the original loop, whose values are kept while its gradient is made
//     }
//   }
//
// All of them are loops of the usual kind, so that gradients of any order follow. `left` is the number of iterations
// that may still run; it becomes zero if a segment ends early because its condition is false: the condition runs once
// per iteration, as in the original loop. Each level costs one more forward run.
#include "passes/loops/checkpoint_while.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "hybridnet/ndarray.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/checkpoint_loops.h"

namespace hybridnet {
namespace {

constexpr int64_t kMaxKept = 64;
constexpr int64_t kMaxSegment = 32;                   // for "sqrt" and for policies
constexpr int64_t kMaxIterations = int64_t{1} << 40;  // years; keeps products of numbers of iterations in range
constexpr int kMaxLevels = 21;                        // with more levels, 64 copies would cover fewer iterations

const OpRef kCast{"Cast"}, kGreater{"_greater_scalar"}, kEqual{"_equal_scalar"}, kAdd{"elemwise_add"},
    kSubtract{"elemwise_sub"}, kMultiply{"elemwise_mul"}, kSmaller{"_minimum_scalar"}, kSliceAxis{"slice_axis"};

int64_t divided_up(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns a to the power n, or a number above kMaxIterations.
int64_t power(int64_t a, int n) {
  int64_t result = 1;
  for (; n > 0 && result <= kMaxIterations; --n) result *= a;
  return result;
}

// The number of iterations of the outermost of `levels` loops, if each of the others runs `inner` times.
int64_t outer_of(int64_t segments, int levels, int64_t inner) { return divided_up(segments, power(inner, levels - 1)); }

// Cuts the segments on this many levels, with long inner loops: the copies of the outermost loop live from the forward
// run to the backward run, those of the others only while their part is computed again.
std::optional<WhileSegments> on_levels(int64_t segments, int levels) {
  WhileSegments cut{.inner = 1, .outer = segments, .levels = levels};
  if (levels > 1) {
    const auto fits = [&](int64_t inner) {
      return (levels - 1) * inner + outer_of(segments, levels, inner) <= kMaxKept;
    };
    for (int64_t inner = 2; inner < kMaxKept; ++inner)
      if (fits(inner)) cut.inner = inner;
    cut.outer = outer_of(segments, levels, cut.inner);
    while (cut.inner > 2 && outer_of(segments, levels, cut.inner - 1) == cut.outer) --cut.inner;  // no room left over
  }
  return cut.kept() <= kMaxKept ? std::optional(cut) : std::nullopt;
}

// Uses as few levels as possible: each costs a forward run.
WhileSegments on_fewest_levels(int64_t segments) {
  for (int levels = 1; levels <= kMaxLevels; ++levels)
    if (const auto cut = on_levels(segments, levels)) return *cut;
  WhileSegments cut{.inner = 3, .levels = kMaxLevels};  // more than 10^10 segments keep a few copies more
  while (outer_of(segments, kMaxLevels, cut.inner) > cut.inner) ++cut.inner;
  cut.outer = outer_of(segments, kMaxLevels, cut.inner);
  return cut;
}

int64_t length_of_segment(int64_t most, const std::string& checkpoint) {
  if (checkpoint == kPolicy) return most <= kMaxKept ? most : kMaxSegment;
  if (checkpoint == "sqrt")
    return std::min(static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(most)))), kMaxSegment);
  return std::max<int64_t>(1, std::strtoll(checkpoint.c_str(), nullptr, 10));
}

class WhileLowering {
 public:
  WhileLowering(Graph& graph, Node& node, const WhileSegments& cut)
      : graph_(graph), node_(node), loop_(loop_of(node)), cut_(cut), values_(node.inputs) {
    if (loop_.counted) values_.pop_back();
    for (const NodeEntry& value : values_) specs_.push_back(graph.spec(value));
    count_spec_ = node.specs.back();
    attrs_ = node.attrs;
    attrs_.erase(kKeepAttribute);  // marks the loop as a whole; its parts are computed again with it
  }

  void run() {
    const Part whole = loops(graph_, cut_.levels, values_, initial_limit(), &node_);
    std::vector<NodeEntry> outputs = whole.stacked;
    for (NodeEntry& rows : outputs) rows = first_rows(rows);
    outputs.insert(outputs.end(), whole.carries.begin(), whole.carries.end());
    outputs.push_back(whole.count);
    whole.count.node->attrs = node_.attrs;
    move_readers(graph_, node_, outputs);
  }

 private:
  // The results of some of the iterations.
  struct Part {
    std::vector<NodeEntry> stacked, carries;
    NodeEntry count;
  };

  int64_t iterations_of(int level) const {
    return cut_.segment * (level == cut_.levels ? power(cut_.inner, level - 1) * cut_.outer : power(cut_.inner, level));
  }

  // Adds `level` nested loops that run at most `left` iterations. values: in place of the node's inputs.
  Part loops(Graph& graph, int level, const std::vector<NodeEntry>& values, const NodeEntry& left, const Node* origin) {
    return level == 0 ? segment(graph, values, left, origin) : loop_over_parts(graph, level, values, left, origin);
  }

  Part segment(Graph& graph, std::vector<NodeEntry> inputs, const NodeEntry& left, const Node* origin) {
    LoopSpec loop = loop_;
    loop.max_iterations = cut_.segment;
    loop.counted = true;
    if (loop.checkpoint != kPolicy) loop.checkpoint.clear();
    loop.draw_offset = 0;
    inputs.push_back(left);
    loop.num_args = static_cast<int32_t>(inputs.size());
    const NodePtr made = graph.add(*node_.op, boxed(std::move(loop)), std::move(inputs), origin, node_.subgraphs);
    describe(*made, origin);
    if (loop_.on_limit != "stop") made->attrs[kWholeLimitAttribute] = std::to_string(*loop_.max_iterations);
    return part_of(made, {made, static_cast<uint32_t>(made->specs.size()) - 1});
  }

  // Carries: those of the loop, the number of iterations left, the number of iterations done.
  Part loop_over_parts(Graph& graph, int level, const std::vector<NodeEntry>& values, const NodeEntry& left,
                       const Node* origin) {
    std::vector<NodeEntry> inputs = values;
    inputs.insert(inputs.begin() + loop_.num_carry, {left, constant(graph, 0)});
    LoopSpec loop;
    loop.num_args = static_cast<int32_t>(inputs.size());
    loop.num_carry = loop_.num_carry + 2;
    loop.num_out = loop_.num_out;
    loop.max_iterations = level == cut_.levels ? cut_.outer : cut_.inner;
    loop.scalar_slices = loop_.scalar_slices;
    loop.checkpoint = kRecompute;
    loop.draw_stride = iterations_of(level - 1);
    const NodePtr made =
        graph.add(*node_.op, boxed(std::move(loop)), std::move(inputs), origin, {some_left(), body_over_parts(level)});
    describe(*made, origin);
    Part part = part_of(made, {made, static_cast<uint32_t>(made->specs.size()) - 2});
    for (NodeEntry& rows : part.stacked) rows = joined(graph, rows, level, origin);
    return part;
  }

  // The inputs that condition and body of a loop over parts have in common. add_slots() adds them to one of the two.
  struct Slots {
    std::vector<NodeEntry> values;
    NodeEntry left, done;
  };
  Slots add_slots(Graph& body) const {
    Slots slots;
    for (size_t i = 0; i <= values_.size(); ++i) {
      if (i == loop_.carries()) {
        slots.left = {body.add_input("left", count_spec_), 0};
        slots.done = {body.add_input("done", count_spec_), 0};
      }
      if (i < values_.size()) slots.values.push_back({body.add_input(values_[i].node->name, specs_[i]), 0});
    }
    return slots;
  }

  Ref<Subgraph> some_left() const {
    Graph condition(graph_.train());
    const Slots slots = add_slots(condition);
    return freeze(condition, {emit(condition, kGreater, {slots.left}, {{"scalar", "0"}}, nullptr)});
  }

  Ref<Subgraph> body_over_parts(int level) {
    Graph body(graph_.train());
    const Slots slots = add_slots(body);
    const Part part = loops(body, level - 1, slots.values, slots.left, nullptr);
    const std::string full = std::to_string(iterations_of(level - 1));
    const NodeEntry goes_on = emit(body, kEqual, {part.count}, {{"scalar", full}}, nullptr);
    const NodeEntry rest = emit(body, kSubtract, {slots.left, part.count}, {}, nullptr);
    std::vector<NodeEntry> outputs = part.stacked;
    outputs.insert(outputs.end(), part.carries.begin(), part.carries.end());
    outputs.push_back(emit(body, kMultiply, {rest, goes_on}, {}, nullptr));
    outputs.push_back(emit(body, kAdd, {slots.done, part.count}, {}, nullptr));
    return freeze(body, outputs);
  }

  Part part_of(const NodePtr& made, const NodeEntry& count) const {
    Part part{.count = count};
    for (uint32_t i = 0; i < loop_.final_carry(loop_.carries()); ++i)
      (i < loop_.outs() ? part.stacked : part.carries).push_back({made, i});
    return part;
  }

  // Joins the rows of parts (parts, rows, ...) to rows of the whole.
  NodeEntry joined(Graph& graph, const NodeEntry& parts, int level, const Node* origin) const {
    Shape shape{iterations_of(level)};
    for (int64_t dim : graph.spec(parts).shape.dims().subspan(2)) shape.push_back(dim);
    return reshaped(graph, parts, shape, origin);
  }

  NodeEntry first_rows(const NodeEntry& rows) const {
    if (graph_.spec(rows).shape[0] == *loop_.max_iterations) return rows;
    return emit(graph_, kSliceAxis, {rows},
                {{"axis", "0"}, {"begin", "0"}, {"end", std::to_string(*loop_.max_iterations)}}, &node_);
  }

  NodeEntry initial_limit() const {
    if (!loop_.counted) return constant(graph_, *loop_.max_iterations);
    NodeEntry limit = node_.inputs.back();
    if (graph_.spec(limit).dtype != DType::kInt64) limit = emit(graph_, kCast, {limit}, {{"dtype", "int64"}}, &node_);
    limit = reshaped(graph_, limit, count_spec_.shape, &node_);
    return emit(graph_, kSmaller, {limit}, {{"scalar", std::to_string(*loop_.max_iterations)}}, &node_);
  }

  NodeEntry constant(Graph& graph, int64_t value) const {
    NDArray array = NDArray::empty(count_spec_);
    *static_cast<int64_t*>(array.data()) = value;
    return {graph.add_constant(Ref<Object>(array.impl()), count_spec_), 0};
  }

  // origin: null for loops inside the outermost.
  void describe(Node& made, const Node* origin) const {
    made.name = node_.name;
    made.block = node_.block;
    made.where = node_.where;
    made.attrs = attrs_;
    if (!origin && is_random(node_)) set_random_stream(made, kStreamOfLoopAround);
  }

  Graph& graph_;
  Node& node_;
  const LoopSpec loop_;
  const WhileSegments cut_;
  std::vector<NodeEntry> values_;  // inputs of the node, without the limit
  std::vector<TensorSpec> specs_;
  TensorSpec count_spec_;
  AttrDict attrs_;
};

}  // namespace

WhileSegments segments_of(int64_t most, const std::string& checkpoint) {
  most = std::min(most, kMaxIterations);
  const int64_t segment = length_of_segment(most, checkpoint);
  if (segment >= most) return {.segment = most};
  WhileSegments cut = on_fewest_levels(divided_up(most, segment));
  cut.segment = segment;
  return cut;
}

void lower_while_checkpoint(Graph& graph, Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (loop.checkpoint.empty() || loop.checkpoint == kRecompute || !loop.max_iterations || loop.exact ||
      !loop.free_axes.empty())
    return;
  const WhileSegments cut = segments_of(*loop.max_iterations, loop.checkpoint);
  if (cut.levels > 0) WhileLowering(graph, node, cut).run();
}

}  // namespace hybridnet
