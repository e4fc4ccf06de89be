// Work that does not depend on the states moves in front of the loop. What reads only captured values is done once
// instead of once per iteration, and kept once for the gradient. Heavy work on the slices alone is done once over all
// rows; its gradient then is outside, too: one product for the weights instead of one per iteration.
#include <algorithm>
#include <optional>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/gradient_nodes.h"
#include "passes/loops/row_work.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

class PushBefore {
 public:
  PushBefore(Graph& graph, Node& node) : graph_(graph), node_(node), p_(params_of<ForeachParams>(node)) {}

  bool run() {
    if (p_.counted || !p_.checkpoint.empty() || p_.in_data_locs.empty()) return false;
    rows_ = graph_.spec(node_.inputs[0]).shape[0];
    if (rows_ < 2 || !may_have_work()) return false;
    std::vector<TensorSpec> inputs;
    for (const NodeEntry& input : node_.inputs) inputs.push_back(graph_.spec(input));
    Graph body = body_graph(node_, 0, body_input_specs(node_, 0, inputs), graph_.train());
    const std::vector<int> sources = body_sources(node_, 0);
    outer_.resize(sources.size());
    for (size_t k = 0; k < sources.size(); ++k) outer_[k] = node_.inputs[static_cast<size_t>(sources[k])];
    is_slice_ = marked(p_.in_data_locs, sources.size());
    is_captured_ = marked(p_.remain_locs, sources.size());
    bool changed = false;
    for (Node* inner : body.order()) {
      if (!body.contains(inner) || inner->is_variable()) continue;
      if (is_invariant(body, *inner)) {
        hoist(body, *inner);
        changed = true;
      } else if (can_move(body, *inner)) {
        changed = move(body, *inner) || changed;
      }
    }
    if (changed) rebuild(body);
    return changed;
  }

 private:
  bool may_have_work() const {
    const Subgraph& body = *node_.subgraphs[0];
    auto is_captured = [&](const NodeEntry& entry) {
      const auto at = std::find(body.inputs.begin(), body.inputs.end(), entry.node);
      const std::optional<int64_t> position = at - body.inputs.begin();
      return at != body.inputs.end() &&
             std::find(p_.remain_locs.begin(), p_.remain_locs.end(), position) != p_.remain_locs.end();
    };
    const std::vector<Node*> nodes = topological_order(body.outputs);
    return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
      return node->op && (node->op->row_wise || (!node->inputs.empty() &&
                                                 std::all_of(node->inputs.begin(), node->inputs.end(), is_captured)));
    });
  }

  // Reads captured values only, cannot fail, and its result is not much larger than what it is made from.
  bool is_invariant(const Graph& body, const Node& node) const {
    if (node.inputs.empty() || !node.subgraphs.empty() || node.op->random || node.op->opaque || !node.op->total ||
        node.op->is_view || node.op->has_writebacks() || node.op->data_dependent_shape)
      return false;
    int64_t in = 0, out = 0;
    for (const NodeEntry& input : node.inputs) {
      const int captured = body.input_index(input.node.get());
      if (captured < 0 || !is_captured_[static_cast<size_t>(captured)]) return false;
      in += body.spec(input).bytes();
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

  void hoist(Graph& body, Node& inner) {
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : inner.inputs)
      inputs.push_back(outer_[static_cast<size_t>(body.input_index(input.node.get()))]);
    const NodePtr moved = add_outside(inner, std::move(inputs));
    const NodePtr self(&inner);
    for (uint32_t i = 0; i < self->specs.size() && body.contains(self.get()); ++i) {
      if (!body.is_used(*self, static_cast<int>(i))) continue;
      const NodePtr slot = body.add_input(self->name, self->specs[i]);
      outer_.push_back({moved, i});
      is_slice_.push_back(false);
      is_captured_.push_back(true);
      p_.remain_locs.push_back(body.input_index(slot.get()));
      body.replace({self, i}, {slot, 0});
    }
  }

  static std::vector<bool> marked(const OptionalInts& locs, size_t count) {
    std::vector<bool> flags(count);
    for (int at : to_ints(locs)) flags[static_cast<size_t>(at)] = true;
    return flags;
  }

  // The input of the body whose elements the entry shows in the same order; -1: none.
  static int root_input(const Graph& body, NodeEntry entry) {
    while (!entry.node->is_variable() && entry.node->op->is_view && entry.node->specs.size() == 1)
      entry = entry.node->inputs[0];
    return body.input_index(entry.node.get());
  }

  bool can_move(const Graph& body, const Node& node) const {
    if (node.is_variable() || node.inputs.empty() || node.specs.size() != 1 || node.op->random || !node.op->total)
      return false;
    if (!works_row_by_row(body, node) || node.specs[0].bytes() * rows_ > kMostRowBytes) return false;
    const int data = root_input(body, node.inputs[0]);
    if (data < 0 || !is_slice_[static_cast<size_t>(data)]) return false;
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](const NodeEntry& input) {
      const int captured = body.input_index(input.node.get());
      return captured >= 0 && is_captured_[static_cast<size_t>(captured)];
    });
  }

  NodeEntry regrouped(const NodeEntry& entry, int64_t first, int64_t second, const Shape& rest) {
    Shape shape{first};
    if (second >= 0) shape.push_back(second);
    for (int64_t dim : rest.dims().subspan(1)) shape.push_back(dim);
    return reshaped(graph_, entry, shape, &node_);
  }

  bool move(Graph& body, Node& inner) {
    const Shape in = body.spec(inner.inputs[0]).shape;
    const TensorSpec out = inner.specs[0];
    if (in.size() == 0 || out.shape.ndim() < 1 || out.shape[0] != in[0]) return false;
    std::vector<NodeEntry> inputs{
        regrouped(outer_[static_cast<size_t>(root_input(body, inner.inputs[0]))], rows_ * in[0], -1, in)};
    for (size_t i = 1; i < inner.inputs.size(); ++i)
      inputs.push_back(outer_[static_cast<size_t>(body.input_index(inner.inputs[i].node.get()))]);
    const NodePtr moved = add_outside(inner, std::move(inputs));
    const NodePtr slot = body.add_input(inner.name, out);
    outer_.push_back(regrouped({moved, 0}, rows_, out.shape[0], out.shape));
    is_slice_.push_back(true);
    is_captured_.push_back(false);
    p_.in_data_locs.push_back(body.input_index(slot.get()));
    body.replace({NodePtr(&inner), 0}, {slot, 0});
    return true;
  }

  void rebuild(const Graph& body) {
    std::vector<NodeEntry> inputs;
    for (const OptionalInts* list : {&p_.in_data_locs, &p_.in_state_locs, &p_.remain_locs})
      for (int at : to_ints(*list)) inputs.push_back(outer_[static_cast<size_t>(at)]);
    p_.num_args = static_cast<int32_t>(inputs.size());
    const NodePtr made = graph_.add(*node_.op, ParamSchema<ForeachParams>::box(std::move(p_)), std::move(inputs),
                                    &node_, {freeze(body, body.outputs())});
    made->attrs = node_.attrs;
    const NodePtr self(&node_);
    for (uint32_t i = 0; i < self->specs.size(); ++i)
      if (graph_.contains(self.get()) && graph_.is_used(*self, static_cast<int>(i)))
        graph_.replace({self, i}, {made, i});
  }

  Graph& graph_;
  Node& node_;
  ForeachParams p_;
  int64_t rows_ = 0;
  std::vector<NodeEntry> outer_;  // per input of the body: the value outside
  std::vector<bool> is_slice_, is_captured_;
};

bool push_before_loops(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.order())
    if (graph.contains(node) && control_kind(*node) == ControlKind::kForeach)
      changed = PushBefore(graph, *node).run() || changed;
  return changed;
}

}  // namespace

bool works_row_by_row(const Graph& body, const Node& node) {
  return node.op->row_wise && !node.inputs.empty() &&
         node.op->row_wise(node.params->data(), body.spec(node.inputs[0]).shape.ndim());
}

void register_push_before_loop(RewriteDatabase& db) {
  db.pass("push_before_loop", push_before_loops).at(3.0).tags({"fast_run", "loop"});
}

}  // namespace hybridnet::passes
