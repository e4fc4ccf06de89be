// Runs T iterations in segments of s: a loop over T / s segments whose body is a loop over s iterations, and a loop
// over the rest. Only the outer loop's states are kept; with s = sqrt(T) these are sqrt(T), and as many values of one
// segment while its gradient is computed (Chen et al. 2016, "Training deep nets with sublinear memory cost").
#include "passes/loops/checkpoint_loops.h"

#include <algorithm>
#include <cmath>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "passes/gradient/gradient.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/checkpoint_while.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kConcat{"Concat"};

class Lowering {
 public:
  Lowering(Graph& graph, Node& node, int64_t segment)
      : graph_(graph), node_(node), loop_(loop_of(node)), segment_(segment), rows_(rows_of(graph, node)) {
    num_segments_ = rows_ / segment_;
    rest_ = rows_ % segment_;
    loop_.checkpoint.clear();
  }

  void run() {
    const NodePtr outer = loop_over_segments();
    std::vector<NodeEntry> outputs;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) {
      NodeEntry output{outer, i};
      if (i < loop_.outs()) output = joined(output);
      outputs.push_back(output);
    }
    if (rest_ > 0) outputs = append_rest(outputs);
    move_readers(graph_, node_, outputs);
  }

 private:
  NodeEntry rows_between(const NodeEntry& data, int64_t begin, int64_t end) {
    if (begin == 0 && end == graph_.spec(data).shape[0]) return data;
    const NodeEntry rows =
        emit(graph_, kSliceAxis, {data},
             {{"axis", "0"}, {"begin", std::to_string(begin)}, {"end", std::to_string(end)}}, &node_);
    rows.node->attrs[kCheapAttribute] = "1";
    return rows;
  }
  // Replaces the axes in front of from_axis by `leading`.
  NodeEntry regrouped(const NodeEntry& data, std::initializer_list<int64_t> leading, int from_axis) {
    Shape shape(leading);
    for (int64_t dim : graph_.spec(data).shape.dims().subspan(static_cast<size_t>(from_axis))) shape.push_back(dim);
    return reshaped(graph_, data, shape, &node_);
  }
  NodeEntry joined(const NodeEntry& segments) { return regrouped(segments, {num_segments_ * segment_}, 2); }

  int64_t first_row() const { return loop_.reverse ? rest_ : 0; }  // first row of the segments; the rest runs last

  // The same loop over this many rows.
  LoopSpec over(int64_t rows) const {
    LoopSpec loop = loop_;
    if (loop.num_seq == 0) loop.length = rows;
    return loop;
  }

  NodePtr loop_over_segments() {
    LoopSpec outer = over(num_segments_);
    outer.checkpoint = kRecompute;
    outer.draw_offset += first_row() * loop_.draw_stride;
    outer.draw_stride *= segment_;
    outer.scalar_slices = true;
    Graph body(graph_.train());
    std::vector<NodeEntry> inner_inputs, outer_inputs;
    for (size_t k = 0; k < node_.inputs.size(); ++k) {
      NodeEntry value = node_.inputs[k];
      TensorSpec spec = graph_.spec(value);
      if (k < loop_.seqs()) {
        value = regrouped(rows_between(value, first_row(), first_row() + num_segments_ * segment_),
                          {num_segments_, segment_}, 1);
        spec.shape[0] = segment_;
      }
      outer_inputs.push_back(value);
      inner_inputs.push_back({body.add_input(node_.inputs[k].node->name, spec), 0});
    }
    LoopSpec inner = over(segment_);
    inner.draw_offset = 0;
    const NodePtr step = body.add(*node_.op, boxed(std::move(inner)), inner_inputs, nullptr, node_.subgraphs);
    describe(*step);
    if (is_random(node_)) set_random_stream(*step, kStreamOfLoopAround);
    std::vector<NodeEntry> results;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) results.push_back({step, i});
    const NodePtr made =
        graph_.add(*node_.op, boxed(std::move(outer)), std::move(outer_inputs), &node_, {freeze(body, results)});
    made->attrs = node_.attrs;
    return made;
  }

  void describe(Node& made) const {
    made.name = node_.name;
    made.block = node_.block;
    made.where = node_.where;
    made.attrs = node_.attrs;
  }

  // Adds the iterations behind the last whole segment.
  std::vector<NodeEntry> append_rest(const std::vector<NodeEntry>& before) {
    std::vector<NodeEntry> inputs = node_.inputs;
    for (size_t k = 0; k < loop_.seqs(); ++k)
      inputs[k] = loop_.reverse ? rows_between(inputs[k], 0, rest_) : rows_between(inputs[k], rows_ - rest_, rows_);
    for (size_t s = 0; s < loop_.carries(); ++s) inputs[loop_.carry(s)] = before[loop_.final_carry(s)];
    LoopSpec loop = over(rest_);
    loop.draw_offset += (loop_.reverse ? 0 : rows_ - rest_) * loop_.draw_stride;
    const NodePtr last = graph_.add(*node_.op, boxed(std::move(loop)), std::move(inputs), &node_, node_.subgraphs);
    last->attrs = node_.attrs;
    std::vector<NodeEntry> outputs;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) {
      NodeEntry output{last, i};
      if (i < loop_.outs()) {
        std::vector<NodeEntry> parts{before[i], output};
        if (loop_.reverse) std::swap(parts[0], parts[1]);
        output = emit(graph_, kConcat, parts, {{"dim", "0"}, {"num_args", "2"}}, &node_);
      }
      outputs.push_back(output);
    }
    return outputs;
  }

  Graph& graph_;
  Node& node_;
  LoopSpec loop_;
  const int64_t segment_, rows_;
  int64_t num_segments_ = 0, rest_ = 0;
};

// The length of a segment. Segments that fill the rows need no copies of the rows around a rest: so "sqrt" takes the
// length from half to twice the square root that divides the rows and is nearest to the root.
int64_t segment_of(const LoopSpec& loop, int64_t rows) {
  if (loop.checkpoint != "sqrt") return std::max<int64_t>(1, std::strtoll(loop.checkpoint.c_str(), nullptr, 10));
  const auto root = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(rows)))));
  for (int64_t away = 0; away <= root; ++away) {
    if (rows % (root + away) == 0) return root + away;
    if (2 * (root - away) >= root && rows % (root - away) == 0) return root - away;
  }
  return root;
}

void lower(Graph& graph, Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (loop.checkpoint.empty() || loop.checkpoint == kRecompute || loop.checkpoint == kPolicy || loop.counted ||
      loop.truncate_gradient > 0 || loop.detach_every > 0)
    return;
  const int64_t rows = rows_of(graph, node), segment = segment_of(loop, rows);
  if (segment < rows && rows > 1) Lowering(graph, node, segment).run();
}

}  // namespace

void lower_checkpoints(Graph& graph) {
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) { lower(graph, node); });
  for_each_node(graph, {ControlKind::kWhileLoop}, [&](Node& node) { lower_while_checkpoint(graph, node); });
}

}  // namespace hybridnet
