#include "passes/layers/axis_order.h"

#include <algorithm>

#include "op/memory_order.h"

namespace hybridnet::passes {
namespace {

int64_t space_of(const TensorSpec& spec) { return spec.shape.size(2, spec.shape.ndim()); }

// The inputs and outputs of a node.
struct Use {
  std::vector<TensorSpec> in;
  std::span<const TensorSpec> out;
  int rank = 0;            // the largest rank
  int64_t space = 1;       // the largest space of images of this rank
  bool are_images = true;  // true for all specs of this rank

  Use(const Graph& graph, const Node& node) : out(node.specs) {
    for (const NodeEntry& input : node.inputs) in.push_back(graph.spec(input));
    each([&](const TensorSpec& spec) { rank = std::max(rank, spec.shape.ndim()); });
    each([&](const TensorSpec& spec) {
      if (spec.shape.ndim() != rank) return;
      are_images = are_images && is_image(spec);
      space = std::max(space, space_of(spec));
    });
  }
  // Beside images with more space, a value with space 1 has one order only.
  bool has_image(const TensorSpec& spec) const {
    return spec.shape.ndim() == rank && (space_of(spec) != 1 || space == 1);
  }

 private:
  template <typename F>
  void each(F f) const {
    std::for_each(in.begin(), in.end(), f);
    std::for_each(out.begin(), out.end(), f);
  }
};

// True for elementwise work on images of the full shape and operands with one value per channel or image. If all shapes
// are equal, the order makes no difference.
bool broadcasts_over_space(const Use& use) {
  if (use.out.size() != 1 || !is_image(use.out[0])) return false;
  const Shape& whole = use.out[0].shape;
  bool any_whole = false, all_whole = true;
  for (const TensorSpec& spec : use.in) {
    const bool is_whole = spec.shape == whole;
    any_whole = any_whole || is_whole;
    all_whole = all_whole && is_whole;
    if (is_whole || spec.shape.size() == 1) continue;
    if (spec.shape.ndim() != whole.ndim() || space_of(spec) != 1) return false;
  }
  return any_whole && !all_whole;
}

bool has_order(const Node& node, const Use& use) {
  if (node.op->pointwise) return broadcasts_over_space(use);
  return node.op->renumbered_params(node.params->data(), channels_last_axes(use.rank)) != nullptr;
}

}  // namespace

std::optional<AxisOrder> axis_order(const Graph& graph, const Node& node) {
  const Op& op = *node.op;
  if (node.inputs.empty() || op.random || op.opaque || !(op.pointwise || op.renumbered_params)) return std::nullopt;
  const Use use(graph, node);
  if (use.rank < 3 || use.rank > 5 || !use.are_images || !has_order(node, use)) return std::nullopt;
  const auto images = [&](std::span<const TensorSpec> specs) {
    std::vector<int> found;
    for (size_t i = 0; i < specs.size(); ++i)
      if (op.pointwise ? specs[i].shape == use.out[0].shape : use.has_image(specs[i]))
        found.push_back(static_cast<int>(i));
    return found;
  };
  AxisOrder order{images(use.in), images(use.out)};
  if (order.inputs.empty() && order.outputs.empty()) return std::nullopt;
  return order;
}

}  // namespace hybridnet::passes
