// Moves work that does not depend on the states in front of the loop. Work on captured values alone is done once
// instead of once per iteration, and kept once for the gradient. Heavy work on the slices alone is done once over all
// rows; its gradient is then outside, too: one product for the weights instead of one per iteration.
#include <algorithm>
#include <optional>

#include "graph/control/loop_view.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/row_work.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

class PushBefore {
 public:
  PushBefore(Graph& graph, Node& node) : graph_(graph), node_(node) {}

  bool run() {
    const LoopSpec& loop = loop_of(node_);
    if (loop.counted || !loop.checkpoint.empty() || loop.num_seq == 0 || rows_of(graph_, node_) < 2 || !may_have_work())
      return false;
    LoopView view(graph_, node_);
    bool changed = false;
    for (const NodePtr& inner : held(view.body.order())) {
      if (!view.body.contains(inner.get()) || inner->is_variable()) continue;
      if (is_invariant(view, *inner)) {
        hoist(view, *inner);
        changed = true;
      } else if (can_move(view, *inner)) {
        changed = move(view, *inner) || changed;
      }
    }
    if (changed) view.replace(graph_, node_, view.put_together(graph_, node_));
    return changed;
  }

 private:
  static std::vector<NodePtr> held(const std::vector<Node*>& nodes) { return {nodes.begin(), nodes.end()}; }

  bool may_have_work() const {
    const Subgraph& body = *node_.subgraphs[0];
    const auto first_captured = body.inputs.begin() + static_cast<long>(loop_of(node_).first_invariant());
    auto is_captured = [&](const NodeEntry& entry) {
      return std::find(first_captured, body.inputs.end(), entry.node) != body.inputs.end();
    };
    const std::vector<Node*> nodes = topological_order(body.outputs);
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      return node->op && (node->op->row_wise || (!node->inputs.empty() &&
                                                 std::all_of(node->inputs.begin(), node->inputs.end(), is_captured)));
    });
  }

  // True if the node reads captured values only, cannot fail, and its result is not much larger than its inputs.
  static bool is_invariant(const LoopView& view, const Node& node) {
    if (node.inputs.empty() || !node.subgraphs.empty() || node.op->random || node.op->opaque || !node.op->total ||
        node.op->is_view || node.op->has_writebacks() || node.op->data_dependent_shape)
      return false;
    int64_t in = 0, out = 0;
    for (const NodeEntry& input : node.inputs) {
      if (!LoopView::find(view.captured, input)) return false;
      in += view.body.spec(input).bytes();
    }
    for (const TensorSpec& spec : node.specs) out += spec.bytes();
    return out <= 2 * in;
  }

  NodePtr add_outside(const Node& inner, std::vector<NodeEntry> inputs) {
    const NodePtr moved = graph_.add(*inner.op, inner.params, std::move(inputs), &node_);
    moved->name = inner.name;
    moved->block = inner.block;
    moved->where = inner.where;
    return moved;
  }

  void hoist(LoopView& view, Node& inner) {
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : inner.inputs) inputs.push_back(LoopView::find(view.captured, input)->outer);
    const NodePtr moved = add_outside(inner, std::move(inputs));
    std::vector<NodeEntry> now(inner.specs.size());
    for (uint32_t i = 0; i < now.size(); ++i)
      if (view.body.is_used(inner, static_cast<int>(i))) now[i] = {view.add_invariant({moved, i}).inner, 0};
    move_readers(view.body, inner, now);
  }

  static bool can_move(const LoopView& view, const Node& node) {
    if (node.inputs.empty() || node.specs.size() != 1 || node.op->random || !node.op->total ||
        !works_row_by_row(view.body, node) || node.specs[0].bytes() * view.rows() > kMaxRowBytes ||
        !LoopView::find(view.data, behind_views(node.inputs[0])))
      return false;
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](const NodeEntry& input) { return LoopView::find(view.captured, input) != nullptr; });
  }

  NodeEntry regrouped(const NodeEntry& entry, int64_t first, int64_t second, const Shape& rest) {
    Shape shape{first};
    if (second >= 0) shape.push_back(second);
    for (int64_t dim : rest.dims().subspan(1)) shape.push_back(dim);
    return reshaped(graph_, entry, shape, &node_);
  }

  bool move(LoopView& view, Node& inner) {
    const Shape in = view.body.spec(inner.inputs[0]).shape;
    const TensorSpec out = inner.specs[0];
    if (in.size() == 0 || out.shape.ndim() < 1 || out.shape[0] != in[0]) return false;
    const NodeEntry rows = LoopView::find(view.data, behind_views(inner.inputs[0]))->outer;
    std::vector<NodeEntry> inputs{regrouped(rows, view.rows() * in[0], -1, in)};
    for (size_t i = 1; i < inner.inputs.size(); ++i)
      inputs.push_back(LoopView::find(view.captured, inner.inputs[i])->outer);
    const NodePtr moved = add_outside(inner, std::move(inputs));
    const NodeEntry whole = regrouped({moved, 0}, view.rows(), out.shape[0], out.shape);
    move_readers(view.body, inner, {{view.add_sequence(whole, out, inner.name).inner, 0}});
    return true;
  }

  Graph& graph_;
  Node& node_;
};

}  // namespace

bool push_before_loop(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach},
                [&](Node& node) { changed = PushBefore(graph, node).run() || changed; });
  return changed;
}

bool works_row_by_row(const Graph& body, const Node& node) {
  return node.op->row_wise && !node.inputs.empty() &&
         node.op->row_wise(node.params->data(), body.spec(node.inputs[0]).shape.ndim());
}

}  // namespace hybridnet::passes
