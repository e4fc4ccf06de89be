// Shares kernels that are linked for the same use: layers of equal sizes have one kernel, which is linked once, and so
// do plans of graphs that are copies of each other.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// True if two nodes of an operator have the same parameters.
bool same_params(const Op& op, const ParamsPtr& a, const ParamsPtr& b);

// The kernels of several plans. Threads: every member is safe from any thread.
class KernelStore : public RefCounted<KernelStore> {
 public:
  // Returns the kernel of a node without bodies; links it if there is none yet.
  Ref<Kernel> link(const Node& node, const LinkContext& context);
  size_t num_linked() const { return num_linked_; }  // so far

 private:
  struct Stored {
    const Op* op;
    ParamsPtr params;
    std::vector<TensorSpec> in, out;
    std::vector<Format> in_format, out_format;
    Device device;
    bool train, frozen_weights, may_round_more;
    Ref<Kernel> kernel;
    bool is_for(const Node& node, const LinkContext& context) const;
  };
  void forget_unused();

  std::mutex mutex_;
  std::unordered_multimap<uint64_t, Stored> stored_;
  size_t swept_at_ = 64;
  std::atomic<size_t> num_linked_{0};
};

class SharedKernels {
 public:
  // The graph outlives the object. store: kernels of other plans, too; may be null.
  explicit SharedKernels(const Graph& graph, Ref<KernelStore> store = nullptr)
      : graph_(graph), store_(std::move(store)) {}
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
  const Ref<KernelStore> store_;
  std::unordered_map<uint64_t, std::vector<Linked>> linked_;
};

}  // namespace hybridnet
