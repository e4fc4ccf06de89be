#include "graph/reduced_axes.h"

#include <bit>
#include <string_view>

namespace hybridnet {
namespace {

AttrValue parameter(const Node& node, std::string_view name) {
  const int field = node.op->schema->find(name);
  return field < 0 ? AttrValue() : node.op->schema->get(node.params->data(), field);
}

}  // namespace

uint32_t reduced_axes(const Graph& graph, const Node& node) {
  const int ndim = graph.spec(node.inputs[0]).shape.ndim();
  const uint32_t all = ndim >= 32 ? ~uint32_t{0} : (uint32_t{1} << ndim) - 1;
  uint32_t axes = 0;
  const auto add = [&](const AttrValue& value) {
    if (const auto* axis = std::get_if<int64_t>(&value.value))
      axes |= uint32_t{1} << (*axis < 0 ? *axis + ndim : *axis);
  };
  const AttrValue given = parameter(node, "axis");
  if (const auto* list = std::get_if<AttrValue::List>(&given.value)) {
    for (const AttrValue& axis : *list) add(axis);
  } else {
    add(given);
  }
  if (axes == 0) return all;  // None and () mean all
  const AttrValue exclude = parameter(node, "exclude");
  const auto* excludes = std::get_if<bool>(&exclude.value);
  return excludes && *excludes ? all & ~axes : axes;
}

std::optional<int> reduced_axis(const Graph& graph, const Node& node) {
  const uint32_t axes = reduced_axes(graph, node);
  return std::has_single_bit(axes) ? std::optional(std::countr_zero(axes)) : std::nullopt;
}

}  // namespace hybridnet
