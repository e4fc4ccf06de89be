#include "device/library_product.h"

#include <atomic>

#include "device/last_launches.h"
#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::device {
namespace {

std::atomic<bool> g_reduced_float32{false};

// The library of the process' backend, which stays; null if it has none.
ProductLibrary* library() {
  static auto* const found = dynamic_cast<ProductLibrary*>(backend());
  return found;
}

}  // namespace

bool allow_reduced_float32(bool allow) { return g_reduced_float32.exchange(allow); }

bool library_product(ProductCall call) {
  if (library() == nullptr) return false;
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
