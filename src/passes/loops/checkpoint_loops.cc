// T iterations in segments of s: a loop over T / s segments whose body is a loop over s iterations, and a loop over
// what is left. Only the outer loop's states are kept; with s = sqrt(T) these are sqrt(T), and as many values of one
// segment while its gradient is computed (Chen et al. 2016, "Training deep nets with sublinear memory cost").
#include "passes/loops/checkpoint_loops.h"

#include <algorithm>
#include <cmath>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/gradient.h"
#include "passes/gradient_nodes.h"
#include "passes/loops/checkpoint_while.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kConcat{"Concat"};

class Lowering {
 public:
  Lowering(Graph& graph, Node& node, int64_t segment)
      : graph_(graph), node_(node), p_(params_of<ForeachParams>(node)), segment_(segment) {
    num_data_ = p_.in_data_locs.size();
    rows_ = num_data_ > 0 ? graph.spec(node.inputs[0]).shape[0] : p_.length;
    num_segments_ = rows_ / segment_;
    rest_ = rows_ % segment_;
    p_.checkpoint.clear();
    if (num_data_ > 0) p_.length = -1;  // the data tells it
  }

  void run() {
    const NodePtr outer = loop_over_segments();
    std::vector<NodeEntry> outputs;
    for (int i = 0; i < p_.num_outputs; ++i) {
      NodeEntry output{outer, static_cast<uint32_t>(i)};
      if (i < p_.num_out_data) output = joined(output);
      outputs.push_back(output);
    }
    if (rest_ > 0) outputs = append_rest(outputs);
    const NodePtr self(&node_);
    for (uint32_t i = 0; i < outputs.size(); ++i)
      if (graph_.contains(self.get()) && graph_.is_used(*self, static_cast<int>(i)))
        graph_.replace({self, i}, outputs[i]);
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
  // The axes in front of from_axis become `leading`.
  NodeEntry regrouped(const NodeEntry& data, std::initializer_list<int64_t> leading, int from_axis) {
    Shape shape(leading);
    for (int64_t dim : graph_.spec(data).shape.dims().subspan(static_cast<size_t>(from_axis))) shape.push_back(dim);
    return reshaped(graph_, data, shape, &node_);
  }
  NodeEntry joined(const NodeEntry& segments) { return regrouped(segments, {num_segments_ * segment_}, 2); }

  int64_t first_row() const { return p_.reverse ? rest_ : 0; }  // of the segments; the rest runs last

  NodePtr loop_over_segments() {
    ForeachParams inner = p_, outer = p_;
    if (num_data_ == 0) {
      inner.length = segment_;
      outer.length = num_segments_;
    }
    outer.checkpoint = kRecompute;
    outer.scalar_slices = true;
    // The body of the outer loop has the node's inputs in the node's order.
    Graph body(graph_.train());
    std::vector<NodeEntry> inner_inputs, outer_inputs;
    outer.in_data_locs.clear();
    outer.in_state_locs.clear();
    outer.remain_locs.clear();
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      NodeEntry value = node_.inputs[i];
      TensorSpec spec = graph_.spec(value);
      if (i < num_data_) {
        value = regrouped(rows_between(value, first_row(), first_row() + num_segments_ * segment_),
                          {num_segments_, segment_}, 1);
        spec.shape[0] = segment_;
      }
      outer_inputs.push_back(value);
      inner_inputs.push_back({body.add_input(node_.inputs[i].node->name, spec), 0});
      (i < num_data_                             ? outer.in_data_locs
       : i < num_data_ + p_.in_state_locs.size() ? outer.in_state_locs
                                                 : outer.remain_locs)
          .push_back(static_cast<int64_t>(i));
    }
    const NodePtr step =
        body.add(*node_.op, ParamSchema<ForeachParams>::box(inner), inner_inputs, nullptr, node_.subgraphs);
    describe(*step);
    std::vector<NodeEntry> results;
    for (int i = 0; i < p_.num_outputs; ++i) results.push_back({step, static_cast<uint32_t>(i)});
    const NodePtr made = graph_.add(*node_.op, ParamSchema<ForeachParams>::box(outer), std::move(outer_inputs), &node_,
                                    {freeze(body, results)});
    made->attrs = node_.attrs;
    return made;
  }

  void describe(Node& made) const {
    made.name = node_.name;
    made.block = node_.block;
    made.where = node_.where;
    made.attrs = node_.attrs;
  }

  // The iterations behind the last whole segment.
  std::vector<NodeEntry> append_rest(const std::vector<NodeEntry>& before) {
    ForeachParams p = p_;
    if (num_data_ == 0) p.length = rest_;
    std::vector<NodeEntry> inputs;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const bool is_state = i >= num_data_ && i < num_data_ + p.in_state_locs.size();
      if (i < num_data_)
        inputs.push_back(p.reverse ? rows_between(node_.inputs[i], 0, rest_)
                                   : rows_between(node_.inputs[i], rows_ - rest_, rows_));
      else
        inputs.push_back(is_state ? before[static_cast<size_t>(p.num_out_data) + i - num_data_] : node_.inputs[i]);
    }
    const NodePtr last =
        graph_.add(*node_.op, ParamSchema<ForeachParams>::box(p), std::move(inputs), &node_, node_.subgraphs);
    last->attrs = node_.attrs;
    if (const std::optional<uint64_t> stream = random_stream(*last))
      set_random_stream(*last, *stream + (uint64_t{1} << 40));  // other draws than the segments
    std::vector<NodeEntry> outputs;
    for (int i = 0; i < p.num_outputs; ++i) {
      NodeEntry output{last, static_cast<uint32_t>(i)};
      if (i < p.num_out_data) {
        std::vector<NodeEntry> parts{before[static_cast<size_t>(i)], output};
        if (p.reverse) std::swap(parts[0], parts[1]);
        output = emit(graph_, kConcat, parts, {{"dim", "0"}, {"num_args", "2"}}, &node_);
      }
      outputs.push_back(output);
    }
    return outputs;
  }

  Graph& graph_;
  Node& node_;
  ForeachParams p_;
  const int64_t segment_;
  size_t num_data_ = 0;
  int64_t rows_ = 0, num_segments_ = 0, rest_ = 0;
};

int64_t segment_of(const ForeachParams& p, int64_t rows) {
  if (p.checkpoint == "sqrt") return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(rows))));
  return std::max<int64_t>(1, std::strtoll(p.checkpoint.c_str(), nullptr, 10));
}

void lower(Graph& graph, Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  if (p.checkpoint.empty() || p.checkpoint == kRecompute || p.checkpoint == kPolicy || p.counted ||
      p.truncate_gradient > 0 || p.detach_every > 0)
    return;
  const int64_t rows = p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
  const int64_t segment = segment_of(p, rows);
  if (segment < rows && rows > 1) Lowering(graph, node, segment).run();
}

}  // namespace

void lower_checkpoints(Graph& graph) {
  for (Node* node : graph.order()) {
    if (!graph.contains(node)) continue;
    if (control_kind(*node) == ControlKind::kForeach) lower(graph, *node);
    if (control_kind(*node) == ControlKind::kWhileLoop) lower_while_checkpoint(graph, *node);
  }
}

}  // namespace hybridnet
