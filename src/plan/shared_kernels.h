// Kernels of one plan by what they are linked for: layers of equal sizes share one, which is linked once.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// What a node is linked for.
struct LinkRequest {
  const Node* node = nullptr;
  std::vector<TensorSpec> in;
  std::vector<Format> in_format, out_format;
  LinkContext context;  // of the above: a request is not copied

  LinkRequest(const Graph& graph, const Node& node, const Device& device, bool frozen_weights);
  LinkRequest(const LinkRequest&) = delete;
};

// Do two nodes of an operator have the same parameters?
bool same_params(const Op& op, const ParamsPtr& a, const ParamsPtr& b);

class SharedKernels {
 public:
  explicit SharedKernels(const Graph& graph) : graph_(graph) {}  // which outlives the object
  // The kernel of a node without bodies. Code outside the library is not shared. Kernels that keep copies of weights
  // keep one for each layer (DerivedUser).
  Ref<Kernel> link(const LinkRequest& request);
  // Links what link() will be asked for, on all cores that the thread may use: generating code takes most of the time
  // that a new size costs. Whatever fails here fails again in link().
  void link_ahead(std::span<const LinkRequest* const> requests);

 private:
  struct Linked {
    const Node* node;
    Ref<Kernel> kernel;  // null: linking it ahead has failed
  };
  static bool is_shared(const Node& node) { return !node.op->opaque && !node.op->stateless; }
  Linked* find(const Node& node);
  uint64_t hash_of(const Node& node) const;
  bool are_alike(const Node& a, const Node& b) const;

  const Graph& graph_;
  std::unordered_map<uint64_t, std::deque<Linked>> linked_;
};

}  // namespace hybridnet
