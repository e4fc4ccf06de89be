// Which axes a reduction is over.
#pragma once

#include <cstdint>
#include <optional>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// Bit i: axis i of the input is reduced. Of operators with the parameters axis and exclude (sum, mean, max, ...).
uint32_t reduced_axes(const Graph& graph, const Node& node);
// The one axis that is reduced; nothing: several are.
std::optional<int> reduced_axis(const Graph& graph, const Node& node);

}  // namespace hybridnet::passes
