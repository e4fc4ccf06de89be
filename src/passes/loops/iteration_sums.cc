#include "passes/loops/iteration_sums.h"

#include <algorithm>

#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kDot{"dot"}, kSum{"sum"}, kTakeGradient{"_backward_take"};

void collect_terms(const NodeEntry& value, std::vector<NodeEntry>& terms) {
  const Node& node = *value.node;
  if (node.op == &kAdd.op()) {
    for (const NodeEntry& input : node.inputs) collect_terms(input, terms);
  } else {
    terms.push_back(value);
  }
}

// True for the gradient of rows that iterations read by their number, if each iteration reads less than the whole
// array. In the loop every iteration would add an array to an array.
bool adds_read_rows(const Graph& body, const Node& node) {
  return node.op == &kTakeGradient.op() && passes::text_attribute(node, "axis") == "0" &&
         body.spec(node.inputs[1]).shape.ndim() > 0 && body.spec(node.inputs[0]).bytes() <= node.specs[0].bytes();
}

// True for dot(a, b, transpose_a=True) of matrices, sums over axis 0 and gradients of read rows: all of them add up
// over the rows of their operands.
bool adds_over_rows(const Graph& body, const Node& node) {
  using passes::bool_attribute;
  if (adds_read_rows(body, node)) return true;
  if (node.op == &kDot.op()) {
    return bool_attribute(node, "transpose_a", false) && !bool_attribute(node, "transpose_b", false) &&
           body.spec(node.inputs[0]).shape.ndim() == 2 && body.spec(node.inputs[1]).shape.ndim() == 2;
  }
  return node.op == &kSum.op() && passes::text_attribute(node, "axis") == "(0,)" &&
         !bool_attribute(node, "keepdims", false) && !bool_attribute(node, "exclude", false) &&
         body.spec(node.inputs[0]).shape.ndim() == 2;
}

}  // namespace

std::vector<NodeEntry> IterationSums::terms_of(const NodeEntry& value) {
  std::vector<NodeEntry> terms;
  collect_terms(value, terms);
  return terms;
}

bool IterationSums::take(const Graph& body, int input, const NodeEntry& term, const Slices& slices,
                         std::vector<NodeEntry>& stacked, bool counted) {
  const Node& node = *term.node;
  if (node.is_variable() || !adds_over_rows(body, node)) return false;
  // Products of rows behind the last iteration would cost time; zeros that are added to any row do not.
  if (counted && (node.op != &kTakeGradient.op() || passes::text_attribute(node, "mode") == "raise")) return false;
  Sum made{input, node.params, node.op, {}};
  const size_t before = stacked.size();
  for (const NodeEntry& entry : node.inputs) {
    std::optional<Operand> found = operand(body, entry, node.op != &kSum.op(), slices, stacked);
    // Only outputs that the loop itself stacks are zero behind the last iteration.
    if (found && counted && made.operands.empty() && found->output < 0) found.reset();
    if (!found) {
      stacked.resize(before);
      return false;
    }
    made.operands.push_back(*found);
  }
  sums_.push_back(std::move(made));
  return true;
}

// The values of an entry in all iterations; nothing if they would have to be copied for it.
std::optional<IterationSums::Operand> IterationSums::operand(const Graph& body, const NodeEntry& entry, bool may_add,
                                                             const Slices& slices, std::vector<NodeEntry>& stacked) {
  const Shape& row = body.spec(entry).shape;
  const NodeEntry shown = behind_views(entry);
  if (const LoopView::Slot* slice = LoopView::find(slices, shown)) return Operand{slice->outer, -1, row};
  if (shown.node->is_variable()) return std::nullopt;
  const auto known = std::find_if(stacked.begin(), stacked.end(),
                                  [&](const NodeEntry& other) { return behind_views(other) == shown; });
  if (known == stacked.end() && !may_add) return std::nullopt;
  const int output = static_cast<int>(known - stacked.begin());
  if (known == stacked.end()) stacked.push_back(shown);
  return Operand{{}, output, row};
}

std::vector<std::pair<int, NodeEntry>> IterationSums::add(Graph& graph, const NodePtr& loop, const Node& origin) const {
  std::vector<std::pair<int, NodeEntry>> values;
  for (const Sum& one : sums_) {
    std::vector<NodeEntry> operands;
    for (const Operand& operand : one.operands) {
      const NodeEntry rows =
          operand.outer.node ? operand.outer : NodeEntry{loop, static_cast<uint32_t>(operand.output)};
      Shape shape = operand.row;
      shape[0] *= graph.spec(rows).shape[0];
      operands.push_back(reshaped(graph, rows, shape, &origin));
    }
    values.push_back({one.input, {graph.add(*one.op, one.params, std::move(operands), &origin), 0}});
  }
  return values;
}

}  // namespace hybridnet
