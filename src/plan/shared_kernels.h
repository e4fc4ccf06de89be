// Kernels of one plan by what they are linked for: layers of equal sizes share one, which is linked once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// Do two nodes of an operator have the same parameters?
bool same_params(const Op& op, const ParamsPtr& a, const ParamsPtr& b);

class SharedKernels {
 public:
  explicit SharedKernels(const Graph& graph) : graph_(graph) {}  // which outlives the object
  // The kernel of a node without bodies. Code outside the library is not shared. Kernels that keep copies of weights
  // keep one for each layer (DerivedUser).
  Ref<Kernel> link(const Node& node, const LinkContext& context);

 private:
  struct Linked {
    const Node* node;
    Ref<Kernel> kernel;
  };
  uint64_t hash_of(const Node& node) const;
  bool are_alike(const Node& a, const Node& b) const;

  const Graph& graph_;
  std::unordered_map<uint64_t, std::vector<Linked>> linked_;
};

}  // namespace hybridnet
