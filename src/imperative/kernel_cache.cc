#include "imperative/kernel_cache.h"

#include <list>
#include <mutex>
#include <unordered_map>

#include "base/hash.h"
#include "op/empty_results.h"

namespace hybridnet {
namespace {

struct Signature {
  const Op* op;
  ParamsPtr params;
  std::vector<TensorSpec> specs;  // inputs, then outputs
  Device device;
  bool train;
  uint64_t hash;

  bool operator==(const Signature& o) const {
    return hash == o.hash && op == o.op && train == o.train && device == o.device && specs == o.specs &&
           op->schema->equal(params->data(), o.params->data());
  }
};
struct SignatureHash {
  size_t operator()(const Signature& s) const { return s.hash; }
};

uint64_t hash_specs(uint64_t h, std::span<const TensorSpec> specs) {
  for (const TensorSpec& s : specs) {
    h = mix_hash(h, static_cast<uint64_t>(s.dtype) * 31 + static_cast<uint64_t>(s.shape.ndim()));
    for (int64_t d : s.shape) h = mix_hash(h, static_cast<uint64_t>(d));
  }
  return h;
}

// Evicts the least recently used kernel first.
class KernelCache {
 public:
  Ref<Kernel> find(const Signature& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    order_.splice(order_.begin(), order_, it->second);
    return it->second->second;
  }
  void insert(Signature key, Ref<Kernel> kernel) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (index_.count(key)) return;
    order_.emplace_front(key, std::move(kernel));
    index_.emplace(std::move(key), order_.begin());
    if (order_.size() > kCapacity) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
  }

 private:
  static constexpr size_t kCapacity = 2048;
  using Order = std::list<std::pair<Signature, Ref<Kernel>>>;
  std::mutex mutex_;
  Order order_;
  std::unordered_map<Signature, Order::iterator, SignatureHash> index_;
};

KernelCache& cache() {
  static KernelCache* c = new KernelCache;  // kernels may be used until the very end of the process
  return *c;
}

}  // namespace

Kernel* find_kernel(const Op& op, const ParamsPtr& params, std::span<const TensorSpec> in,
                    std::span<const TensorSpec> out, Device device, bool train, Ref<Kernel>* owner) {
  if (op.stateless && device.type != DeviceType::kGPU &&
      (out.empty() || out[0].shape.size() != 0 || !computes_nothing(op, in, out))) {
    const DType dtype = !in.empty() ? in[0].dtype : out.empty() ? DType::kFloat32 : out[0].dtype;
    if (op.dtypes.has(dtype)) return op.stateless.get();
  }
  Signature key{&op, params, {}, device, train, 0};
  key.specs.reserve(in.size() + out.size());
  key.specs.insert(key.specs.end(), in.begin(), in.end());
  key.specs.insert(key.specs.end(), out.begin(), out.end());
  key.hash = hash_specs(mix_hash(op.schema->hash(params->data()), static_cast<uint64_t>(op.id) * 2 + train), key.specs);
  *owner = cache().find(key);
  if (!*owner) {
    LinkContext link;
    link.params = params->data();
    link.in = in;
    link.out = out;
    link.device = device;
    link.train = train;
    *owner = op.link(link);
    cache().insert(std::move(key), *owner);
  }
  return owner->get();
}

}  // namespace hybridnet
