// Operators that name axes, on channels-last images: the same operator on (batch, spatial..., channels) with other axis
// numbers.
#pragma once

#include <optional>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// Floating, with a batch, channels and one to three axes of space: what may lie channels-last.
inline bool is_image(const TensorSpec& spec) {
  return is_floating(spec.dtype) && spec.shape.ndim() >= 3 && spec.shape.ndim() <= 5;
}

struct AxisOrder {
  ParamsPtr params;                  // for axes in memory order
  std::vector<int> inputs, outputs;  // images: they change their order together
  std::vector<int> reshaped;         // further inputs whose axes are renamed, though not one element moves
};
// Null: the node has no such form, or no image of rank 3 to 5.
std::optional<AxisOrder> axis_order(const Graph& graph, const Node& node);

// Replaces such nodes where the layout pass made their images channels-last. Runs behind all passes: fusion takes some
// of them into its groups.
bool renumber_axes(Graph& graph);

}  // namespace hybridnet::passes
