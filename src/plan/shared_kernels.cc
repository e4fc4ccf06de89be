#include "plan/shared_kernels.h"

#include "passes/rounding.h"
#include "passes/size_questions.h"

namespace hybridnet {
namespace {

NodeEntry output_of(const Node& node, uint32_t index) { return {NodePtr(const_cast<Node*>(&node)), index}; }

}  // namespace

bool same_params(const Op& op, const ParamsPtr& a, const ParamsPtr& b) {
  if (a.get() == b.get()) return true;
  return op.schema->equal(a->data(), b->data());
}

uint64_t SharedKernels::hash_of(const Node& node) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(node.op);
  const auto add = [&](const Shape& shape) { hash = (hash ^ ShapeHash()(shape)) * 0x9e3779b97f4a7c15u; };
  for (const NodeEntry& input : node.inputs) add(graph_.spec(input).shape);
  for (const TensorSpec& spec : node.specs) add(spec.shape);
  return hash;
}

bool SharedKernels::are_alike(const Node& a, const Node& b) const {
  if (a.op != b.op || a.inputs.size() != b.inputs.size() || a.specs != b.specs ||
      !same_params(*a.op, a.params, b.params) || may_round_more(a) != may_round_more(b))
    return false;
  for (size_t i = 0; i < a.inputs.size(); ++i)
    if (!(graph_.spec(a.inputs[i]) == graph_.spec(b.inputs[i])) ||
        graph_.format(a.inputs[i]) != graph_.format(b.inputs[i]))
      return false;
  for (uint32_t i = 0; i < a.specs.size(); ++i)
    if (graph_.format(output_of(a, i)) != graph_.format(output_of(b, i))) return false;
  return true;
}

Ref<Kernel> SharedKernels::link(const Node& node, const LinkContext& context) {
  if (node.op->opaque || node.op->stateless) return node.op->link(context);
  std::vector<Linked>& known = linked_[hash_of(node)];
  for (const Linked& linked : known)
    if (are_alike(*linked.node, node)) return linked.kernel;
  known.push_back({&node, node.op->link(context)});
  return known.back().kernel;
}

}  // namespace hybridnet
