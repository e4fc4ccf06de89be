// The axes of a reduction.
#pragma once

#include <cstdint>
#include <optional>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// Bit i: axis i of the input is reduced. For operators with the parameters axis and exclude (sum, mean, max, ...).
uint32_t reduced_axes(const Graph& graph, const Node& node);
// The only reduced axis; nothing if there are several.
std::optional<int> reduced_axis(const Graph& graph, const Node& node);

}  // namespace hybridnet
