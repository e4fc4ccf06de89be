// Moves heavy work whose result only leaves the loop behind the loop: its input is stacked instead, and all rows are
// done at once. T products of a row become one of a matrix; the gradient of its weights is one product, too.
#include <algorithm>
#include <optional>

#include "graph/control/loop_view.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/row_work.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// The last work on an output before it leaves, all of it by row: heavy work, then elementwise operators.
struct Tail {
  std::vector<Node*> nodes;  // in order; the first is the heavy one
  NodeEntry source;          // the input of the heavy node
};

class PushBehind {
 public:
  PushBehind(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  bool run() {
    const LoopSpec& loop = loop_of(node_);
    if (loop.counted || loop.truncate_gradient > 0 || !loop.checkpoint.empty() || rows_of(graph_, node_) < 2)
      return false;
    const Subgraph& frozen = *node_.subgraphs[0];
    const std::vector<NodeEntry> outs(frozen.outputs.begin(), frozen.outputs.begin() + loop.num_out);
    const std::vector<Node*> nodes = topological_order(outs);
    if (std::none_of(nodes.begin(), nodes.end(), [](const Node* n) { return !n->is_variable() && n->op->row_wise; }))
      return false;
    LoopView view(graph_, node_);
    std::vector<std::pair<int, Tail>> moved;  // output of the node, work behind the loop
    for (const LoopView::Out& out : std::vector(view.outs))
      if (std::optional<Tail> tail = tail_of(view, out)) moved.push_back({out.output, std::move(*tail)});
    if (moved.empty()) return false;
    std::vector<size_t> stacked;  // per moved output: number of the out that holds its source
    for (const auto& [output, tail] : moved) {
      std::erase_if(view.outs, [&, gone = output](const LoopView::Out& out) { return out.output == gone; });
    }
    for (const auto& [output, tail] : moved) stacked.push_back(out_of(view, tail.source));
    const NodePtr made = view.put_together(graph_, node_);
    std::vector<NodeEntry> others(node_.specs.size());
    for (size_t i = 0; i < moved.size(); ++i)
      others[static_cast<size_t>(moved[i].first)] = behind(view, view.out(made, stacked[i]), moved[i].second);
    view.replace(graph_, node_, made, others);
    return true;
  }

 private:
  static bool is_captured(const LoopView& view, const NodeEntry& entry) {
    return LoopView::find(view.captured, entry) != nullptr;
  }

  std::optional<Tail> tail_of(const LoopView& view, const LoopView::Out& out) const {
    const Graph& body = view.body;
    Tail tail;
    NodeEntry at = view.entry(out.value);
    const TensorSpec last = body.spec(at);
    while (true) {
      if (at.node->is_variable() || at.node->specs.size() != 1 || body.clients(at).size() != 1) return std::nullopt;
      Node& node = *at.node;
      tail.nodes.insert(tail.nodes.begin(), &node);
      if (node.op->row_wise) break;
      if (!node.op->pointwise || node.inputs.size() != 1 || node.op->random || node.op->opaque || !node.op->total ||
          body.spec(node.inputs[0]).shape != node.specs[0].shape)
        return std::nullopt;
      at = node.inputs[0];
    }
    // A state is an output of the body, too: the next iteration then reads the output as well.
    for (const LoopView::Carry& state : view.carries)
      if (state.next == out.value) return std::nullopt;
    const Node& heavy = *at.node;
    tail.source = heavy.inputs[0];
    const TensorSpec in = body.spec(tail.source), result = heavy.specs[0];
    if (!works_row_by_row(body, heavy) || !heavy.op->total || heavy.op->random || is_captured(view, tail.source) ||
        !std::all_of(heavy.inputs.begin() + 1, heavy.inputs.end(),
                     [&](const NodeEntry& input) { return is_captured(view, input); }))
      return std::nullopt;
    if (in.shape.size() == 0 || result.shape.ndim() < 1 || result.shape[0] != in.shape[0]) return std::nullopt;
    if (!holds_rows_cheaply(view, tail.source, in, last) || in.bytes() * view.rows() > kMaxRowBytes ||
        result.bytes() * view.rows() > kMaxRowBytes)
      return std::nullopt;
    return tail;
  }

  // True if rows of the source exist anyway, or are no larger than the rows that need not be written any more.
  bool holds_rows_cheaply(const LoopView& view, const NodeEntry& source, const TensorSpec& in,
                          const TensorSpec& last) const {
    if (in.bytes() <= last.bytes()) return true;
    for (const LoopView::Out& out : view.outs)
      if (view.entry(out.value) == source) return true;
    return graph_.train() && std::any_of(view.carries.begin(), view.carries.end(), [&](const LoopView::Carry& state) {
             return view.entry(state.next) == source;
           });
  }

  static size_t out_of(LoopView& view, const NodeEntry& source) {
    for (size_t i = 0; i < view.outs.size(); ++i)
      if (view.entry(view.outs[i].value) == source) return i;
    view.outs.push_back({view.output_of(source), -1});
    return view.outs.size() - 1;
  }

  NodeEntry behind(const LoopView& view, const NodeEntry& rows, const Tail& tail) {
    const Shape stacked = graph_.spec(rows).shape;
    Shape flat{stacked[0] * stacked[1]};
    for (int64_t dim : stacked.dims().subspan(2)) flat.push_back(dim);
    NodeEntry at = reshaped(graph_, rows, flat, tail.nodes[0]);
    for (const Node* inner : tail.nodes) {
      std::vector<NodeEntry> inputs{at};
      for (size_t i = 1; i < inner->inputs.size(); ++i)
        inputs.push_back(LoopView::find(view.captured, inner->inputs[i])->outer);
      const NodePtr node = graph_.add(*inner->op, inner->params, std::move(inputs), inner);
      node->attrs = inner->attrs;
      at = {node, 0};
    }
    Shape whole{stacked[0]};
    for (int64_t dim : tail.nodes.back()->specs[0].shape) whole.push_back(dim);
    return reshaped(graph_, at, whole, tail.nodes.back());
  }

  Graph& graph_;
  Node& node_;
};

}  // namespace

bool push_behind_loop(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach},
                [&](Node& node) { changed = PushBehind(graph, node).run() || changed; });
  return changed;
}

}  // namespace hybridnet::passes
