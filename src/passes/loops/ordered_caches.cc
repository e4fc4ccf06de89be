// A beam search brings its caches of keys and values into the order of the beams after each word:
//   cache = take(index_copy(cache, rows, new), parents)
// which moves them whole. Instead the rows stay where they were written: a small array has the entry of the batch in
// which each row stands, it is brought into the order of the beams, and attention reads through it. Behind the loop the
// caches are brought into order once.
#include <algorithm>
#include <optional>

#include "graph/control/loop_view.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// Attention of more queries brings keys and values into order itself, each time.
constexpr int64_t kMostQueries = 4;

const OpRef kTake{"take"}, kIndexCopy{"_contrib_index_copy"}, kArange{"_arange"}, kBroadcastTo{"broadcast_to"},
    kOrderedAttention{"_ordered_attention"}, kOrderedRows{"_ordered_rows"},
    kAttentions[] = {OpRef{"_contrib_flash_attention"}, OpRef{"_flash_attention"}};

// A carry that is written at `rows` along `axis`, read by attention, and reordered by `take`.
struct Cache {
  size_t carry;
  NodePtr write, take;
  int axis;
  std::vector<NodePtr> attentions;
};

// The rows of caches in one group stand in the same entries of the batch.
struct Group {
  NodeEntry rows, parents;
  std::string mode;
  int64_t entries, length;
  std::vector<Cache> caches;
};

int axis_of(const Node& node, int ndim) {
  const int64_t axis = integer_attribute(node, "axis", 0);
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

bool is_attention(const Node& node) {
  return std::any_of(std::begin(kAttentions), std::end(kAttentions),
                     [&](const OpRef& op) { return node.op == &op.op(); });
}

class OrderedCaches {
 public:
  OrderedCaches(Graph& graph, Node& node) : graph_(graph), node_(node), view_(graph, node) {}

  bool run() {
    if (!has_candidate()) return false;
    const PipelineScope scope(node_, node_.subgraphs.size() - 1);
    run_pipeline(view_.body, kForwardStages);  // attention becomes one operator
    for (size_t i = 0; i < view_.carries.size(); ++i)
      if (const std::optional<Cache> cache = cache_at(i)) join(*cache);
    while (drop_partial_attention()) continue;
    std::erase_if(groups_, [](const Group& group) { return group.caches.empty(); });
    if (groups_.empty()) return false;
    std::vector<NodeEntry> others(node_.specs.size());
    std::vector<size_t> orders;
    for (const Group& group : groups_) orders.push_back(keep_in_place(group));
    const NodePtr made = view_.put_together(graph_, node_);
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const Cache& cache : groups_[g].caches) bring_into_order(made, cache, orders[g], others);
    view_.replace(graph_, node_, made, others);
    return true;
  }

 private:
  // True if the body writes to arrays and reorders a state: the rest is known only when it has been rewritten.
  bool has_candidate() const {
    const bool reorders = std::any_of(view_.carries.begin(), view_.carries.end(), [&](const LoopView::Carry& carry) {
      return is_first_of(view_.entry(carry.next), kTake);
    });
    if (!reorders) return false;
    const std::vector<Node*> nodes = view_.body.order();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->op == &kIndexCopy.op(); });
  }

  // The carry as a cache; nothing if it is used in another way, too.
  std::optional<Cache> cache_at(size_t carry) const {
    const LoopView::Carry& c = view_.carries[carry];
    const NodeEntry state{c.slot.inner, 0}, &next = view_.entry(c.next);
    if (c.slot.tested || !is_first_of(next, kTake) || readers(next) != 1) return std::nullopt;
    const NodePtr take = next.node;
    const NodeEntry& written = take->inputs[0];
    if (!is_first_of(written, kIndexCopy) || written.node->inputs[0] != state || readers(state) != 1)
      return std::nullopt;
    const NodePtr write = written.node;
    const Shape& shape = view_.body.spec(state).shape;
    if (shape.size() == 0 || view_.body.spec(write->inputs[1]).shape.size() == 0) return std::nullopt;
    const int ndim = shape.ndim();
    if (axis_of(*take, ndim) != 0 || view_.body.spec(take->inputs[1]).shape != Shape({shape[0]})) return std::nullopt;
    Cache cache{carry, write, take, axis_of(*write, ndim), {}};
    if (cache.axis == 0) return std::nullopt;
    for (const Client& client : view_.body.clients(written)) {
      if (client.kind != Client::Kind::kNode) return std::nullopt;
      if (client.node == take.get()) continue;
      if (!attends_to(*client.node, client.index, cache)) return std::nullopt;
      cache.attentions.emplace_back(client.node);
    }
    if (cache.attentions.empty()) return std::nullopt;
    return cache;
  }

  size_t readers(const NodeEntry& entry) const { return view_.body.clients(entry).size(); }

  // True if this input of the node is the keys or the values of attention with few queries for each entry of the batch.
  bool attends_to(const Node& node, int input, const Cache& cache) const {
    if (!is_attention(node) || (input != 1 && input != 2)) return false;
    if (integer_attribute(node, "parts", 0) != 0 || number_attribute(node, "p", 0) != 0) return false;
    const bool heads_inside = bool_attribute(node, "heads_inside", false);
    const Shape& query = view_.body.spec(node.inputs[0]).shape;
    const int length = query.ndim() - (heads_inside ? 3 : 2);
    const int heads = integer_attribute(node, "shared", 1) > 1 ? 1 : 0;
    return length == cache.axis && length > heads && query[length] <= kMostQueries;
  }

  void join(const Cache& cache) {
    const NodeEntry &rows = cache.write->inputs[1], &parents = cache.take->inputs[1];
    const Shape& shape = cache.write->specs[0].shape;
    const std::string mode = text_attribute(*cache.take, "mode");
    for (Group& group : groups_)
      if (group.rows == rows && group.parents == parents && group.mode == mode && group.entries == shape[0] &&
          group.length == shape[cache.axis])
        return group.caches.push_back(cache);
    groups_.push_back({rows, parents, mode, shape[0], shape[cache.axis], {cache}});
  }

  static bool writes(const Group& group, const NodeEntry& entry) {
    return std::any_of(group.caches.begin(), group.caches.end(),
                       [&](const Cache& cache) { return cache.write == entry.node; });
  }

  // Leaves out caches of attention whose keys or values are not in the same group. Returns true if there were any.
  bool drop_partial_attention() {
    size_t dropped = 0;
    for (Group& group : groups_)
      dropped += std::erase_if(group.caches, [&](const Cache& cache) {
        return !std::all_of(cache.attentions.begin(), cache.attentions.end(), [&](const NodePtr& node) {
          return writes(group, node->inputs[1]) && writes(group, node->inputs[2]);
        });
      });
    return dropped > 0;
  }

  // (entries, columns): the number of the row.
  NodeEntry own_entries(Graph& graph, int64_t entries, int64_t columns, const Node& origin) const {
    const NodeEntry numbers =
        emit(graph, kArange, {}, {{"start", "0"}, {"stop", std::to_string(entries)}, {"dtype", "int32"}}, &origin);
    const NodeEntry column = reshaped(graph, numbers, Shape({entries, 1}), &origin);
    return emit(graph, kBroadcastTo, {column}, {{"shape", Shape({entries, columns}).str()}}, &origin);
  }

  // Returns the number of the carry that has the entries of the rows.
  size_t keep_in_place(const Group& group) {
    Graph& body = view_.body;
    const Node &write = *group.caches[0].write, &take = *group.caches[0].take;
    const TensorSpec spec{.shape = Shape({group.entries, group.length}), .dtype = DType::kInt32};
    const NodePtr order = body.add_input("order", spec);
    const NodeEntry own = own_entries(body, group.entries, body.spec(group.rows).shape[0], write);
    const NodeEntry now = emit(body, kIndexCopy, {{order, 0}, group.rows, own}, {{"axis", "1"}}, &write);
    const NodeEntry next = emit(body, kTake, {now, group.parents}, {{"axis", "0"}, {"mode", group.mode}}, &take);
    for (const Cache& cache : group.caches) {
      for (const NodePtr& attention : cache.attentions)
        if (body.contains(attention.get())) read_through(*attention, now);
      view_.carries[cache.carry].next = view_.output_of({cache.write, 0});
    }
    const NodeEntry start = own_entries(graph_, group.entries, group.length, node_);
    view_.carries.push_back({{start, order, nullptr}, view_.output_of(next), -1});
    return view_.carries.size() - 1;
  }

  void read_through(Node& attention, const NodeEntry& order) {
    std::vector<NodeEntry> inputs = attention.inputs;
    inputs.push_back(order);
    const Op& op = kOrderedAttention.op();
    const NodePtr made = view_.body.add(op, make_params(op, &attention, {}), std::move(inputs), &attention);
    std::vector<NodeEntry> outputs;
    for (uint32_t i = 0; i < attention.specs.size(); ++i) outputs.emplace_back(made, i);
    move_readers(view_.body, attention, outputs);
  }

  void bring_into_order(const NodePtr& made, const Cache& cache, size_t order, std::vector<NodeEntry>& others) {
    LoopView::Carry& carry = view_.carries[cache.carry];
    const auto output = static_cast<size_t>(std::exchange(carry.output, -1));
    if (!graph_.is_used(node_, static_cast<int>(output))) return;
    others[output] = emit(graph_, kOrderedRows, {view_.final_carry(made, cache.carry), view_.final_carry(made, order)},
                          {{"axis", std::to_string(cache.axis)}}, &node_);
  }

  Graph& graph_;
  Node& node_;
  LoopView view_;
  std::vector<Group> groups_;
};

}  // namespace

bool ordered_caches(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach, ControlKind::kWhileLoop}, [&](Node& node) {
    if (LoopView::can_view(node)) changed = OrderedCaches(graph, node).run() || changed;
  });
  return changed;
}

}  // namespace hybridnet::passes
