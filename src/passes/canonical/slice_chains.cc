// Slices of slices become one slice, and parts of joined arrays become the arrays.
#include <algorithm>
#include <optional>

#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kSlice{"slice"}, kSliceAxis{"slice_axis"}, kConcat{"Concat"}, kStack{"stack"}, kExpandDims{"expand_dims"};

using Bound = std::optional<int64_t>;

// x[begin:end] along one axis.
struct Range {
  Bound begin, end;
  bool whole() const { return !begin && !end; }
  // First index and end, counted as in Python.
  std::pair<int64_t, int64_t> of(int64_t size) const {
    const auto place = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
    const int64_t first = begin ? place(*begin) : 0;
    return {first, std::max(first, end ? place(*end) : size)};
  }
};

Bound bound_of(const AttrValue& value) {
  const auto* whole = std::get_if<int64_t>(&value.value);
  return whole ? Bound(*whole) : std::nullopt;
}

Bound item(const AttrValue& list, size_t i) {
  const auto* items = std::get_if<AttrValue::List>(&list.value);
  return items && i < items->size() ? bound_of((*items)[i]) : std::nullopt;
}

int axis_first_of(const Node& node, const char* name, int ndim) {
  const auto axis = static_cast<int>(integer_attribute(node, name, 0));
  return axis < 0 ? axis + ndim : axis;
}

// One range per axis; nothing for other operators and for steps.
std::optional<std::vector<Range>> ranges_of(const Graph& graph, const NodeEntry& entry) {
  const Node& node = *entry.node;
  if (!is_first_of(entry, kSlice) && !is_first_of(entry, kSliceAxis)) return std::nullopt;
  const int ndim = graph.spec(node.inputs[0]).shape.ndim();
  std::vector<Range> ranges(static_cast<size_t>(ndim));
  if (is_first_of(entry, kSliceAxis)) {
    ranges[static_cast<size_t>(axis_first_of(node, "axis", ndim))] = {bound_of(attribute(node, "begin")),
                                                                      bound_of(attribute(node, "end"))};
    return ranges;
  }
  const AttrValue begin = attribute(node, "begin"), end = attribute(node, "end"), step = attribute(node, "step");
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (item(step, i).value_or(1) != 1) return std::nullopt;
    ranges[i] = {item(begin, i), item(end, i)};
  }
  return ranges;
}

// Returns the position in x of index `at` of x[inner], as a bound of a slice of x. Nothing if no bound expresses it.
Bound moved(const Bound& inner_begin, const Bound& inner_end, int64_t at) {
  const Bound& base = at >= 0 ? inner_begin : inner_end;
  if (!base) return at;
  const int64_t sum = *base + at;
  return (*base < 0) == (sum < 0) ? Bound(sum) : std::nullopt;
}

// The range that equals `inner`, then `outer`, for an axis of this size. The question is asked again for other sizes.
std::optional<Range> composed(const Range& inner, const Range& outer, int64_t size) {
  Range both = inner;
  if (outer.begin) {
    both.begin = moved(inner.begin, inner.end, *outer.begin);
    if (!both.begin) return std::nullopt;
  }
  if (outer.end) {
    both.end = moved(inner.begin, inner.end, *outer.end);
    if (!both.end) return std::nullopt;
  }
  const auto same = [=](int64_t n) {
    const auto [first, stop] = inner.of(n);
    const auto [a, b] = outer.of(stop - first);
    const auto [begin, end] = both.of(n);
    return end - begin == b - a && (a == b || begin == first + a);
  };
  if (!ask_sizes({Shape{size}}, [same](std::span<const Shape> shapes) { return same(shapes[0][0]); }))
    return std::nullopt;
  return both;
}

NodeEntry sliced(Graph& graph, const NodeEntry& entry, const std::vector<Range>& ranges, const Node& origin) {
  AttrValue::List begin, end;
  const auto value = [](const Bound& bound) { return bound ? AttrValue(*bound) : AttrValue(); };
  for (const Range& range : ranges) {
    begin.push_back(value(range.begin));
    end.push_back(value(range.end));
  }
  const auto cut = [](const Range& range) { return !range.whole(); };
  const auto axis = std::find_if(ranges.begin(), ranges.end(), cut);
  if (std::count_if(ranges.begin(), ranges.end(), cut) != 1) {
    ParamsPtr params = make_params(kSlice.op(), nullptr, {{"begin", begin}, {"end", end}});
    return {graph.add(kSlice.op(), std::move(params), {entry}, &origin), 0};
  }
  ParamsPtr params = make_params(kSliceAxis.op(), nullptr,
                                 {{"axis", static_cast<int64_t>(axis - ranges.begin())},
                                  {"begin", axis->begin.value_or(0)},
                                  {"end", value(axis->end)}});
  return {graph.add(kSliceAxis.op(), std::move(params), {entry}, &origin), 0};
}

// If a node splits a join back into its inputs: the outputs of the node, in order.
std::vector<NodeEntry> parts_of(Graph& graph, const Node& node, const Node& join) {
  const int ndim = graph.spec(node.inputs[0]).shape.ndim();
  const bool stacked = join.op == &kStack.op();
  const int axis = axis_first_of(join, stacked ? "axis" : "dim", ndim);
  const size_t count = join.inputs.size();
  if (axis_first_of(node, "axis", ndim) != axis || node.specs.size() != count) return {};
  std::vector<NodeEntry> parts;
  for (size_t i = 0; i < count; ++i) {
    NodeEntry part = join.inputs[i];
    if (stacked && !bool_attribute(node, "squeeze_axis", false))
      part = emit(graph, kExpandDims, {part}, {{"axis", std::to_string(axis)}}, &node);
    if (!(graph.spec(part) == node.specs[i])) return {};
    parts.push_back(part);
  }
  return parts;
}

bool at_border(const Graph& graph, const Node& node) {
  for (int i = 0; i < static_cast<int>(node.specs.size()); ++i)
    for (const Client& reader : graph.clients(node, i))
      if (reader.kind != Client::Kind::kNode) return true;
  return false;
}

}  // namespace

Replacement join_slices(Graph& graph, Node& node) {
  const auto outer = ranges_of(graph, {NodePtr(&node), 0});
  const auto inner = ranges_of(graph, node.inputs[0]);
  if (!outer || !inner) return no_change();
  const NodeEntry& start = node.inputs[0].node->inputs[0];
  std::vector<Range> all;
  for (size_t i = 0; i < outer->size(); ++i) {
    const Range &first = (*inner)[i], &second = (*outer)[i];
    const auto both = second.whole()  ? std::optional(first)
                      : first.whole() ? std::optional(second)
                                      : composed(first, second, graph.spec(start).shape[static_cast<int>(i)]);
    if (!both) return no_change();
    all.push_back(*both);
  }
  return replace_with(sliced(graph, start, all, node));
}

// A split into parts of the same sizes and order returns the joined arrays.
Replacement split_of_join_joint(Graph& graph, Node& node) {
  const NodeEntry& joined = node.inputs[0];
  if ((!is_first_of(joined, kConcat) && !is_first_of(joined, kStack)) || at_border(graph, node)) return no_change();
  std::vector<NodeEntry> parts = parts_of(graph, node, *joined.node);
  if (parts.empty()) return no_change();
  for (size_t i = 0; i < parts.size(); ++i)
    if (!graph.is_used(node, static_cast<int>(i))) parts[i] = {};
  return {std::move(parts), {}, {}};
}

Replacement split_of_join(Graph& graph, Node& node) {
  for (int i = 0; i < static_cast<int>(node.specs.size()); ++i)
    if (!graph.is_used(node, i)) return no_change();
  return split_of_join_joint(graph, node);
}

// stack(..)[i:i + 1] is input i with one more axis.
Replacement part_of_stack(Graph& graph, Node& node) {
  const NodeEntry& joined = node.inputs[0];
  if (!is_first_of(joined, kStack)) return no_change();
  const auto ranges = ranges_of(graph, {NodePtr(&node), 0});
  const int axis = axis_first_of(*joined.node, "axis", graph.spec(joined).shape.ndim());
  if (!ranges) return no_change();
  for (size_t i = 0; i < ranges->size(); ++i)
    if (static_cast<int>(i) != axis && !(*ranges)[i].whole()) return no_change();
  const auto [first, stop] = (*ranges)[static_cast<size_t>(axis)].of(static_cast<int64_t>(joined.node->inputs.size()));
  if (stop != first + 1) return no_change();
  return replace_with(emit(graph, kExpandDims, {joined.node->inputs[static_cast<size_t>(first)]},
                           {{"axis", std::to_string(axis)}}, &node));
}

}  // namespace hybridnet::passes
