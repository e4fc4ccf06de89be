// Finds the inputs and outputs that may be channels-last images, for operators that number axes or broadcast over them.
#pragma once

#include <optional>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// True for floats or bytes with a batch, channels and one to three axes of space: only these may lie channels-last.
inline bool is_image(const TensorSpec& spec) {
  const DType dtype = spec.dtype;  // integers: quantized images, and sums of their products
  const bool is_quantized = dtype == DType::kInt8 || dtype == DType::kUInt8 || dtype == DType::kInt32;
  return (is_floating(dtype) || is_quantized) && spec.shape.ndim() >= 3 && spec.shape.ndim() <= 5;
}

struct AxisOrder {
  std::vector<int> inputs, outputs;  // images: they change their order together (op/memory_order.h)
};
// Nothing if the node has no such form, or no image of rank 3 to 5.
std::optional<AxisOrder> axis_order(const Graph& graph, const Node& node);

}  // namespace hybridnet::passes
