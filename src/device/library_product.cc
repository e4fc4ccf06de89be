#include "device/library_product.h"

#include <atomic>

#include "device/last_launches.h"
#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::device {
namespace {

// A library computes products for which our own kernel needs at least this many steps, one after the other. A step is
// the work of a block on 16 of k: 256 multiplications and additions by each of 256 threads, two barriers and a read of
// memory, roughly 0.6 us by the clock rates and latencies of current GPUs (not measured). The library costs the host 5
// to 10 us more than a launch, and cuts a plan's graph in two, which is another launch. So it pays from about 20 us of
// our kernel: 32 steps. Layers of small networks (k below 512, up to 128 tiles) stay with our kernel, and so their
// networks stay whole graphs.
constexpr int64_t kLeastLibrarySteps = 32;
std::atomic<int64_t> g_least_steps{kLeastLibrarySteps};
std::atomic<bool> g_reduced_float32{false};

// The library of the process' backend, which stays; null if it has none.
ProductLibrary* library() {
  static auto* const found = dynamic_cast<ProductLibrary*>(backend());
  return found;
}

}  // namespace

bool allow_reduced_float32(bool allow) { return g_reduced_float32.exchange(allow); }

int64_t set_least_library_steps(int64_t steps) { return g_least_steps.exchange(steps); }

bool library_product(ProductCall call, int64_t own_steps) {
  if (own_steps < g_least_steps.load(std::memory_order_relaxed) || library() == nullptr) return false;
  Stream& stream = *current();
  call.reduced_float32 = call.dtype == DType::kFloat32 && g_reduced_float32.load(std::memory_order_relaxed);
  const std::shared_ptr<const ProductLibrary::Plan> plan = library()->plan(call);
  if (!plan) return false;
  // Temporary memory of the stream: its later users wait for the product, which waits for its earlier users.
  const OwnedBlock workspace(plan->workspace_bytes, stream.device());
  const Backend::Stream handle = stream.handle();  // pushes what was collected
  note_launch("product of a library");
  library()->multiply(*plan, call, workspace.data(), handle);
  return true;
}

}  // namespace hybridnet::device
