// If only the last rows of a loop's output are read, the output is not stacked: the rows travel along as states, so
// that memory does not grow with the number of iterations. Runs behind differentiation, when all readers are known.
#include <algorithm>
#include <optional>

#include "graph/control/loop_view.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

constexpr int64_t kMaxRows = 4;  // each needs a state of its own

const OpRef kConcat{"Concat"};

struct Rows {
  int64_t first = 0, end = 0;
};

std::optional<int64_t> number(const AttrValue& value) {
  const auto* found = std::get_if<int64_t>(&value.value);
  return found ? std::optional(*found) : std::nullopt;
}

// An index as Python counts it, within [0, rows].
int64_t position(std::optional<int64_t> index, int64_t rows, int64_t otherwise) {
  if (!index) return otherwise;
  return std::clamp<int64_t>(*index < 0 ? *index + rows : *index, 0, rows);
}

// The rows that a node takes from its input, whole and in order; nothing if the node does not take rows.
std::optional<Rows> rows_taken(const Node& node, int64_t rows) {
  if (node.op->name == "slice_axis") {
    if (number(attribute(node, "axis")) != 0) return std::nullopt;
    return Rows{position(number(attribute(node, "begin")), rows, 0),
                position(number(attribute(node, "end")), rows, rows)};
  }
  if (node.op->name != "slice") return std::nullopt;
  AttrValue parts[3];
  const char* const names[] = {"begin", "end", "step"};
  for (int i = 0; i < 3; ++i) {
    const AttrValue value = attribute(node, names[i]);
    const auto* list = std::get_if<AttrValue::List>(&value.value);
    if (!list) return std::nullopt;
    const auto whole = [](const AttrValue& bound) { return bound.is_none(); };
    if (list->size() > 1 && !std::all_of(list->begin() + 1, list->end(), whole)) return std::nullopt;
    if (!list->empty()) parts[i] = list->front();
  }
  if (number(parts[2]).value_or(1) != 1) return std::nullopt;
  return Rows{position(number(parts[0]), rows, 0), position(number(parts[1]), rows, rows)};
}

class KeepLastRows {
 public:
  KeepLastRows(Graph& graph, Node& node) : graph_(graph), node_(node), rows_(rows_of(graph, node)) {}

  bool run() {
    const LoopSpec& loop = loop_of(node_);
    reverse_ = loop.reverse;
    if (loop.counted || rows_ < 2) return false;
    std::vector<int> chosen;
    for (int i = 0; i < loop.num_out; ++i)
      if (depth_of(i) > 0) chosen.push_back(i);
    if (chosen.empty()) return false;
    LoopView view(graph_, node_);
    std::vector<std::vector<size_t>> states;  // per chosen output: the carries that hold its last row, the one before
    for (int out : chosen) states.push_back(carry(view, out, depth_of(out)));
    std::erase_if(view.outs, [&](const LoopView::Out& out) {
      return std::find(chosen.begin(), chosen.end(), out.output) != chosen.end();
    });
    const NodePtr made = view.put_together(graph_, node_);
    for (size_t i = 0; i < chosen.size(); ++i) serve(view, made, chosen[i], states[i]);
    view.replace(graph_, node_, made);
    return true;
  }

 private:
  // The number of iterations between the one that wrote the row and the last one.
  int64_t age(int64_t row) const { return reverse_ ? row : rows_ - 1 - row; }

  // The number of last rows that the readers of an output need; 0: too many to travel along, or no readers.
  int64_t depth_of(int out) const {
    int64_t depth = 0;
    for (const Client& client : graph_.clients(node_, out)) {
      if (client.kind != Client::Kind::kNode) return 0;
      const std::optional<Rows> taken = rows_taken(*client.node, rows_);
      if (!taken || taken->end <= taken->first) return 0;
      depth = std::max({depth, age(taken->first) + 1, age(taken->end - 1) + 1});
    }
    return depth <= kMaxRows && 2 * depth <= rows_ ? depth : 0;
  }

  std::vector<size_t> carry(LoopView& view, int out, int64_t depth) {
    NodeEntry value = view.entry(out);
    const TensorSpec spec = view.body.spec(value);
    std::vector<size_t> states;
    for (int64_t k = 0; k < depth; ++k) {
      const auto same = std::find_if(view.carries.begin(), view.carries.end(),
                                     [&](const LoopView::Carry& s) { return view.entry(s.next) == value; });
      const auto at = static_cast<size_t>(same - view.carries.begin());
      if (same == view.carries.end()) {
        view.add_carry(zeros(graph_, spec, &node_), spec, "last" + std::to_string(k), value);
      }
      states.push_back(at);
      value = {view.carries[at].slot.inner, 0};  // its value one iteration earlier
    }
    return states;
  }

  void serve(const LoopView& view, const NodePtr& made, int out, const std::vector<size_t>& states) {
    const std::vector<Client> readers = graph_.clients(node_, out);
    for (const Client& client : readers) {
      const Rows taken = *rows_taken(*client.node, rows_);
      Shape shape{1};
      for (int64_t dim : client.node->specs[0].shape.dims().subspan(1)) shape.push_back(dim);
      std::vector<NodeEntry> parts;
      for (int64_t row = taken.first; row < taken.end; ++row) {
        const size_t state = states[static_cast<size_t>(age(row))];
        parts.push_back(reshaped(graph_, view.final_carry(made, state), shape, client.node));
      }
      const NodeEntry whole =
          parts.size() == 1
              ? parts[0]
              : emit(graph_, kConcat, parts, {{"dim", "0"}, {"num_args", std::to_string(parts.size())}}, client.node);
      graph_.replace({NodePtr(client.node), 0}, whole);
    }
  }

  Graph& graph_;
  Node& node_;
  const int64_t rows_;
  bool reverse_ = false;
};

}  // namespace

bool keep_last_rows(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach},
                [&](Node& node) { changed = KeepLastRows(graph, node).run() || changed; });
  return changed;
}

}  // namespace hybridnet::passes
