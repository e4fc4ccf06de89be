#include "plan/shared_kernels.h"

#include <algorithm>

#include "base/hash.h"
#include "passes/control/size_questions.h"
#include "passes/rounding.h"

namespace hybridnet {
namespace {

uint64_t hash_of_specs(const Op* op, std::span<const TensorSpec> in, std::span<const TensorSpec> out) {
  uint64_t hash = reinterpret_cast<uintptr_t>(op);
  for (const std::span<const TensorSpec> specs : {in, out})
    for (const TensorSpec& spec : specs) hash = mix_hash(hash, ShapeHash()(spec.shape));
  return hash;
}

NodeEntry output_of(const Node& node, uint32_t index) { return {NodePtr(const_cast<Node*>(&node)), index}; }

}  // namespace

bool same_params(const Op& op, const ParamsPtr& a, const ParamsPtr& b) {
  if (a.get() == b.get()) return true;
  return op.schema->equal(a->data(), b->data());
}

uint64_t SharedKernels::hash_of(const Node& node) const {
  uint64_t hash = reinterpret_cast<uintptr_t>(node.op);
  const auto add = [&](const Shape& shape) { hash = mix_hash(hash, ShapeHash()(shape)); };
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

bool KernelStore::Stored::is_for(const Node& node, const LinkContext& context) const {
  const auto same = [](const auto& kept, const auto& given) {
    return std::equal(kept.begin(), kept.end(), given.begin(), given.end());
  };
  return op == node.op && device == context.device && train == context.train &&
         frozen_weights == context.frozen_weights && may_round_more == context.may_round_more && same(in, context.in) &&
         same(out, context.out) && same(in_format, context.in_format) && same(out_format, context.out_format) &&
         same_params(*op, params, node.params);
}

Ref<Kernel> KernelStore::link(const Node& node, const LinkContext& context) {
  const uint64_t hash = hash_of_specs(node.op, context.in, context.out);
  const std::lock_guard lock(mutex_);
  for (auto [it, end] = stored_.equal_range(hash); it != end; ++it)
    if (it->second.is_for(node, context)) return it->second.kernel;
  Stored made{node.op,
              node.params,
              {context.in.begin(), context.in.end()},
              {context.out.begin(), context.out.end()},
              {context.in_format.begin(), context.in_format.end()},
              {context.out_format.begin(), context.out_format.end()},
              context.device,
              context.train,
              context.frozen_weights,
              context.may_round_more,
              node.op->link(context)};
  ++num_linked_;
  forget_unused();
  return stored_.emplace(hash, std::move(made))->second.kernel;
}

void KernelStore::forget_unused() {
  if (stored_.size() < swept_at_) return;
  std::erase_if(stored_, [](const auto& entry) { return entry.second.kernel->ref_count() == 1; });
  swept_at_ = std::max<size_t>(64, 2 * stored_.size());
}

Ref<Kernel> SharedKernels::link(const Node& node, const LinkContext& context) {
  if (node.op->opaque || node.op->stateless) return node.op->link(context);
  std::vector<Linked>& known = linked_[hash_of(node)];
  for (const Linked& linked : known)
    if (are_alike(*linked.node, node)) return linked.kernel;
  known.push_back({&node, store_ ? store_->link(node, context) : node.op->link(context)});
  return known.back().kernel;
}

}  // namespace hybridnet
