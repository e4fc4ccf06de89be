#include "passes/axis_order.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "passes/attributes.h"
#include "passes/stand_in.h"

namespace hybridnet::passes {
namespace {

// (batch, channels, spatial...) in the order of channels-last memory.
Shape in_memory_order(const Shape& shape) {
  Shape result = shape;
  for (int i = 2; i < shape.ndim(); ++i) result[i - 1] = shape[i];
  result[shape.ndim() - 1] = shape[1];
  return result;
}

int64_t in_memory_order(int64_t axis, int ndim) {
  if (axis < 0) axis += ndim;
  return axis == 0 ? 0 : axis == 1 ? ndim - 1 : axis - 1;
}

// A use of an operator, in a graph or being linked.
struct Use {
  const Node& node;  // its operator and parameters
  std::vector<TensorSpec> in;
  std::span<const TensorSpec> out;
};
std::optional<AxisOrder> axis_order(const Use& use);

class ReorderedKernel final : public Kernel {
 public:
  ReorderedKernel(const StandIn& p, const LinkContext& c) : params_(params_in_memory_order(p, c)) {
    const std::vector<TensorSpec> in = permuted(c.in, p.inputs), out = permuted(c.out, p.outputs);
    for (const TensorSpec& spec : in) shapes_.push_back(spec.shape);
    for (const TensorSpec& spec : out) shapes_.push_back(spec.shape);
    LinkContext inner = c;
    inner.params = params_->data();
    inner.in = in;
    inner.out = out;
    inner.in_format = {};
    inner.out_format = {};
    kernel_ = p.op->link(inner);
  }
  int64_t workspace_bytes() const override { return kernel_->workspace_bytes(); }

  void run(const KernelArgs& args) override {
    TensorRef few[kFew];
    std::unique_ptr<TensorRef[]> many;
    TensorRef* refs = few;
    if (shapes_.size() > kFew) refs = (many = std::make_unique<TensorRef[]>(shapes_.size())).get();
    std::copy(args.in.begin(), args.in.end(), refs);
    std::copy(args.out.begin(), args.out.end(), refs + args.in.size());
    for (size_t i = 0; i < shapes_.size(); ++i) {
      refs[i].shape = &shapes_[i];
      refs[i].format = Format::kPlain;
    }
    KernelArgs inner = args;
    inner.params = params_->data();
    inner.in = {refs, args.in.size()};
    inner.out = {refs + args.in.size(), args.out.size()};
    kernel_->run(inner);
  }

 private:
  static constexpr size_t kFew = 12;
  static ParamsPtr params_in_memory_order(const StandIn& p, const LinkContext& c) {
    const NodePtr node = make_node(*p.op, "", p.params, {});
    return axis_order({*node, {c.in.begin(), c.in.end()}, c.out}).value().params;
  }
  static std::vector<TensorSpec> permuted(std::span<const TensorSpec> specs, const std::vector<uint8_t>& which) {
    std::vector<TensorSpec> result(specs.begin(), specs.end());
    for (size_t i = 0; i < result.size(); ++i) {
      if (which[i]) result[i].shape = in_memory_order(result[i].shape);
    }
    return result;
  }

  const ParamsPtr params_;
  Ref<Kernel> kernel_;
  std::vector<Shape> shapes_;  // of inputs, then of outputs
};

std::unique_ptr<Op> make_op() {
  auto op = make_stand_in_op("_in_memory_order",
                             "An operator on images whose axes are numbered in the order of channels-last memory.");
  OpBuilder<StandIn>(*op).link(
      [](const StandIn& p, const LinkContext& c) { return Ref<Kernel>(new ReorderedKernel(p, c)); });
  return op;
}

const Op& reordered_op() {
  static const Op& op = *make_op().release();  // lives as long as plans may
  return op;
}

std::vector<int> count_up(size_t n) {
  std::vector<int> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Ops with one axis parameter, all of whose inputs and outputs are images of one rank.
std::optional<AxisOrder> along_axis(const Use& use, const char* name) {
  const int ndim = use.in[0].shape.ndim();
  auto fits = [&](const TensorSpec& spec) { return is_image(spec) && spec.shape.ndim() == ndim; };
  if (!std::all_of(use.in.begin(), use.in.end(), fits) || !std::all_of(use.out.begin(), use.out.end(), fits))
    return std::nullopt;
  const auto axis = static_cast<int64_t>(number_attribute(use.node, name, 0));
  ParamsPtr params = make_params(*use.node.op, &use.node, {{name, AttrValue(in_memory_order(axis, ndim))}});
  return AxisOrder{std::move(params), count_up(use.in.size()), count_up(use.out.size()), {}};
}

// Elementwise with broadcasting: images of the full shape, and others that have one value per channel or image.
std::optional<AxisOrder> broadcasting(const Use& use) {
  if (use.out.size() != 1 || !is_image(use.out[0])) return std::nullopt;
  const Shape& whole = use.out[0].shape;
  AxisOrder order{use.node.params, {}, {0}, {}};
  for (int i = 0; i < static_cast<int>(use.in.size()); ++i) {
    const Shape& shape = use.in[static_cast<size_t>(i)].shape;
    if (shape == whole) {
      order.inputs.push_back(i);
    } else if (shape.ndim() == whole.ndim() && shape.size(2, shape.ndim()) == 1) {
      order.reshaped.push_back(i);
    } else if (shape.size() != 1) {
      return std::nullopt;
    }
  }
  // Where all shapes are equal the order makes no difference.
  if (order.inputs.empty() || order.inputs.size() == use.in.size()) return std::nullopt;
  return order;
}

// The parameter `axis` with other numbers, where it lists all axes of space and no other.
std::optional<AttrValue> renamed_axes_of_space(const Node& node, int ndim) {
  const AttrValue axis = attribute(node, "axis");
  const auto* list = std::get_if<AttrValue::List>(&axis.value);
  if (!list || static_cast<int>(list->size()) != ndim - 2) return std::nullopt;
  AttrValue::List renamed;
  for (const AttrValue& v : *list) {
    const auto* number = std::get_if<int64_t>(&v.value);
    if (!number) return std::nullopt;
    renamed.emplace_back(in_memory_order(*number, ndim));
    const int64_t now = std::get<int64_t>(renamed.back().value);
    if (now == 0 || now == ndim - 1) return std::nullopt;
  }
  return AttrValue(renamed);
}

// Sums, means and extremes over all of space: what they give has no space that could have an order.
std::optional<AxisOrder> over_space(const Use& use) {
  const TensorSpec& in = use.in[0];
  if (!is_image(in) || bool_attribute(use.node, "exclude", false)) return std::nullopt;
  std::optional<AttrValue> axes = renamed_axes_of_space(use.node, in.shape.ndim());
  if (!axes) return std::nullopt;
  return AxisOrder{make_params(*use.node.op, &use.node, {{"axis", std::move(*axes)}}), {0}, {}, {}};
}

// The way back: one value per image and channel, repeated over all of space.
std::optional<AxisOrder> spread_over_space(const Use& use) {
  if (!is_image(use.out[0])) return std::nullopt;
  const Shape& shape = use.out[0].shape;
  std::optional<AttrValue> axes = renamed_axes_of_space(use.node, shape.ndim());
  if (!axes) return std::nullopt;
  AttrValue::List sizes;
  for (const int64_t size : in_memory_order(shape)) sizes.emplace_back(size);
  return AxisOrder{
      make_params(*use.node.op, &use.node, {{"shape", AttrValue(sizes)}, {"axis", std::move(*axes)}}), {}, {0}, {}};
}

bool may_have_axis_order(const Node& node) {
  const std::string& name = node.op->name;
  return name == "Concat" || name == "SliceChannel" || name == "_split_v2" || name == "slice_axis" || name == "sum" ||
         name == "mean" || name == "max" || name == "min" || name == "_spread" ||
         (node.op->pointwise && name.starts_with("broadcast_"));
}

std::optional<AxisOrder> axis_order(const Use& use) {
  const std::string& name = use.node.op->name;
  if (name == "Concat") return along_axis(use, "dim");
  if (name == "sum" || name == "mean" || name == "max" || name == "min") return over_space(use);
  if (name == "_spread") return spread_over_space(use);
  if (use.node.op->pointwise) return broadcasting(use);
  if (bool_attribute(use.node, "squeeze_axis", false)) return std::nullopt;
  return along_axis(use, "axis");
}

}  // namespace

std::optional<AxisOrder> axis_order(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.op->random || node.op->opaque || !may_have_axis_order(node)) return std::nullopt;
  Use use{node, {}, node.specs};
  for (const NodeEntry& input : node.inputs) use.in.push_back(graph.spec(input));
  return axis_order(use);
}

namespace {

NodePtr add_in_axis_order(Graph& graph, const Node& node, const AxisOrder& order) {
  StandIn p{node.op, node.params, {}, {}};
  p.inputs.assign(node.inputs.size(), 0);
  p.outputs.assign(node.specs.size(), 0);
  for (const int i : order.inputs) p.inputs[static_cast<size_t>(i)] = 1;
  for (const int i : order.reshaped) p.inputs[static_cast<size_t>(i)] = 1;
  for (const int i : order.outputs) p.outputs[static_cast<size_t>(i)] = 1;
  if (order.outputs.empty() && node.specs[0].shape.ndim() == graph.spec(node.inputs[0]).shape.ndim()) {
    p.outputs[0] = 1;  // keepdims: space is 1 in either order
  }
  const NodePtr made = graph.add(reordered_op(), make_stand_in_params(std::move(p)), node.inputs, &node);
  for (const int i : order.outputs) graph.set_format({made, static_cast<uint32_t>(i)}, Format::kChannelsLast);
  return made;
}

}  // namespace

bool renumber_axes(Graph& graph) {
  bool changed = false;
  const std::vector<Node*> order_now = graph.order();
  for (const NodePtr& node : std::vector<NodePtr>(order_now.begin(), order_now.end())) {  // held: some go on the way
    if (!graph.contains(node.get()) || node->is_variable()) continue;
    const std::optional<AxisOrder> order = axis_order(graph, *node);
    if (!order) continue;
    const NodeEntry image = order->inputs.empty() ? NodeEntry{node, static_cast<uint32_t>(order->outputs[0])}
                                                  : node->inputs[static_cast<size_t>(order->inputs[0])];
    if (graph.format(image) != Format::kChannelsLast) continue;
    const NodePtr made = add_in_axis_order(graph, *node, *order);
    Graph::Pairs pairs;
    for (uint32_t i = 0; i < node->specs.size(); ++i) {
      pairs.push_back({NodeEntry{NodePtr(node), i}, NodeEntry{made, i}});
    }
    changed = graph.replace_validate(pairs, {}) || changed;
  }
  return changed;
}

}  // namespace hybridnet::passes
