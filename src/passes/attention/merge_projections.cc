// Merges the dense layers that make queries, keys and values of one array into one product; attention reads its parts
// in place.
#include <algorithm>
#include <optional>

#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/node_builders.h"
#include "passes/preparation.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kDense{"FullyConnected"}, kReshape{"Reshape"}, kSlice{"slice_axis"}, kSplit{"SliceChannel"},
    kConcat{"Concat"};

// Rows [begin, end) of `source`.
struct RowsOf {
  NodeEntry source;
  int64_t begin = 0, end = 0;
};

RowsOf rows_of(const Graph& graph, const NodeEntry& entry) {
  const int64_t count = graph.spec(entry).shape[0];
  const Node& node = *entry.node;
  if (is_first_of(entry, kSlice) && number_attribute(node, "axis", 0) == 0) {
    const int64_t all = graph.spec(node.inputs[0]).shape[0];
    int64_t begin = integer_attribute(node, "begin", 0);
    if (begin < 0) begin += all;
    return {node.inputs[0], begin, begin + count};
  }
  if (!node.is_variable() && node.op == &kSplit.op() && number_attribute(node, "axis", 1) == 0 &&
      !bool_attribute(node, "squeeze_axis", false)) {
    return {node.inputs[0], entry.index * count, (entry.index + 1) * count};
  }
  return {entry, 0, count};
}

// Returns the array if the parts are all of its rows, in order; else nullopt.
std::optional<NodeEntry> adjacent(const Graph& graph, const std::vector<NodeEntry>& parts) {
  int64_t next = 0;
  const NodeEntry source = rows_of(graph, parts[0]).source;
  for (const NodeEntry& part : parts) {
    const RowsOf rows = rows_of(graph, part);
    if (!(rows.source == source) || rows.begin != next) return std::nullopt;
    next = rows.end;
  }
  return next == graph.spec(source).shape[0] ? std::optional(source) : std::nullopt;
}

// Joins the parts. In prediction parameters are joined once, not in every call.
NodeEntry concatenated(Graph& graph, const std::vector<NodeEntry>& parts, const Node& origin) {
  const NodeEntry all =
      emit(graph, kConcat, parts, {{"num_args", std::to_string(parts.size())}, {"dim", "0"}}, &origin);
  const auto is_known = [&](const NodeEntry& part) { return is_parameter(graph, part); };
  if (!graph.train() && std::all_of(parts.begin(), parts.end(), is_known)) mark_as_preparation(*all.node);
  return all;
}

// Joined weights are a second copy: per step in training, permanent in prediction. For large ones it saved no time
// (measured with 128 rows of 768), so these are not joined, to save memory.
bool may_join(const Graph& graph, const std::vector<NodeEntry>& weights) {
  constexpr int64_t kMaxCopied = int64_t{1} << 18;  // elements of each
  if (adjacent(graph, weights)) return true;
  const auto is_known = [&](const NodeEntry& part) { return is_parameter(graph, part); };
  return !graph.train() && std::all_of(weights.begin(), weights.end(), is_known) &&
         ask_sizes({graph.spec(weights[0]).shape},
                   [](std::span<const Shape> shapes) { return shapes[0].size() <= kMaxCopied; });
}

NodeEntry joined(Graph& graph, const std::vector<NodeEntry>& parts, const Node& origin) {
  const std::optional<NodeEntry> source = adjacent(graph, parts);
  return source ? *source : concatenated(graph, parts, origin);
}

// The parameter of Reshape that splits `dense` (..., heads * size) to (batch..., length, heads, size); `split` is the
// same with fewer heads. Nothing if this takes more than to split the last axis and, perhaps, to join the first two.
std::optional<std::string> split_shape(const Shape& dense, const Shape& split, int64_t heads) {
  const int kept = split.ndim() - 2, given = dense.ndim() - 1, joined = given - kept;
  if (joined < 0 || joined > 1 || dense.size(0, 1 + joined) != split[0]) return std::nullopt;
  for (int i = 1; i < kept; ++i)
    if (dense[i + joined] != split[i]) return std::nullopt;
  std::string shape = joined == 1 ? "(-3, " : "(0, ";
  for (int i = 1; i < kept; ++i) shape += "0, ";
  return shape + "-4, " + std::to_string(heads) + ", -1)";
}

// The dense layer behind operand i of attention, if each value between them has one reader; otherwise null.
const Node* projection(const Graph& graph, const Node& attention, size_t i) {
  const NodeEntry& split = attention.inputs[i];
  if (!is_first_of(split, kReshape) || graph.only_reader(split) != &attention) return nullptr;
  const NodeEntry& out = split.node->inputs[0];
  return is_first_of(out, kDense) && graph.only_reader(out) == split.node.get() ? out.node.get() : nullptr;
}

bool agree(const Node& a, const Node& b) {
  return a.inputs[0] == b.inputs[0] && a.inputs.size() == b.inputs.size() && a.specs[0] == b.specs[0] &&
         bool_attribute(a, "flatten", true) == bool_attribute(b, "flatten", true);
}

}  // namespace

Replacement qkv_merge(Graph& graph, Node& node) {
  if (!bool_attribute(node, "heads_inside", false) || number_attribute(node, "parts", 0) != 0) return no_change();
  const TensorSpec& split = graph.spec(node.inputs[0]);
  const Node* first = projection(graph, node, 0);
  std::vector<NodeEntry> weights, biases;
  for (size_t i = 0; i < 3; ++i) {
    const Node* dense = projection(graph, node, i);
    if (dense == nullptr || !agree(*dense, *first) || !(graph.spec(node.inputs[i]) == split)) return no_change();
    weights.push_back(dense->inputs[1]);
    if (dense->inputs.size() > 2) biases.push_back(dense->inputs[2]);
  }
  const int64_t heads = 3 * split.shape[split.shape.ndim() - 2];
  const std::optional<std::string> shape = split_shape(first->specs[0].shape, split.shape, heads);
  if (!shape || !may_join(graph, weights)) return no_change();
  if (!biases.empty() && graph.spec(biases[0]).shape.ndim() != 1) return no_change();
  std::vector<NodeEntry> inputs{first->inputs[0], joined(graph, weights, *first)};
  if (!biases.empty()) inputs.push_back(joined(graph, biases, *first));
  const int64_t hidden = graph.spec(inputs[1]).shape[0];
  const NodePtr product =
      graph.add(kDense.op(), make_params(kDense.op(), first, {{"num_hidden", hidden}}), std::move(inputs), first);
  std::vector<NodeEntry> operands = node.inputs;
  operands.erase(operands.begin(), operands.begin() + 2);
  operands[0] = emit(graph, kReshape, {{product, 0}}, {{"shape", *shape}}, &node);
  const NodePtr fused = graph.add(*node.op, make_params(*node.op, &node, {{"parts", 3}}), std::move(operands), &node);
  if (const std::optional<uint64_t> stream = random_stream(node)) set_random_stream(*fused, *stream);
  return replace_with({fused, 0});
}

}  // namespace hybridnet::passes
