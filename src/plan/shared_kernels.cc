#include "plan/shared_kernels.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "hybridnet/threads.h"
#include "passes/rounding.h"
#include "passes/size_questions.h"

namespace hybridnet {
namespace {

NodeEntry output_of(const Node& node, uint32_t index) { return {NodePtr(const_cast<Node*>(&node)), index}; }

}  // namespace

LinkRequest::LinkRequest(const Graph& graph, const Node& n, const Device& device, bool frozen_weights) : node(&n) {
  for (const NodeEntry& input : n.inputs) {
    in.push_back(graph.spec(input));
    in_format.push_back(graph.format(input));
  }
  for (uint32_t i = 0; i < n.specs.size(); ++i) out_format.push_back(graph.format(output_of(n, i)));
  context.params = n.params->data();
  context.in = in;
  context.out = n.specs;
  context.in_format = in_format;
  context.out_format = out_format;
  context.device = device;
  context.train = graph.train();
  context.frozen_weights = frozen_weights;
  context.may_round_more = may_round_more(n);
}

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

SharedKernels::Linked* SharedKernels::find(const Node& node) {
  for (Linked& linked : linked_[hash_of(node)])
    if (are_alike(*linked.node, node)) return &linked;
  return nullptr;
}

Ref<Kernel> SharedKernels::link(const LinkRequest& request) {
  const Node& node = *request.node;
  if (!is_shared(node)) return node.op->link(request.context);
  Linked* known = find(node);
  if (!known) known = &linked_[hash_of(node)].emplace_back(Linked{&node, nullptr});
  if (!known->kernel) known->kernel = node.op->link(request.context);
  return known->kernel;
}

void SharedKernels::link_ahead(std::span<const LinkRequest* const> requests) {
  constexpr size_t kWorthAThread = 4;  // kernels: starting a thread takes as long as linking one or two
  struct Work {
    const LinkRequest* request;
    Linked* linked;
  };
  std::vector<Work> work;
  for (const LinkRequest* request : requests) {
    const Node& node = *request->node;
    if (!is_shared(node) || find(node)) continue;
    work.push_back({request, &linked_[hash_of(node)].emplace_back(Linked{&node, nullptr})});
  }
  // Kernels are made for as many cores as this thread has, and for its shape semantics.
  const int cores = current_cores();
  const bool np_shape = is_np_shape();
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < work.size();) {
      try {
        work[i].linked->kernel = work[i].request->node->op->link(work[i].request->context);
      } catch (...) {  // link() meets it again, where the node can be named
      }
    }
  };
  std::vector<std::thread> helpers;
  const size_t worth = std::min(static_cast<size_t>(cores), work.size() / kWorthAThread);
  for (size_t i = 1; i < worth; ++i)
    helpers.emplace_back([&] {
      const CoreScope scope(cores);
      set_np_shape(np_shape);
      take();
    });
  take();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace hybridnet
