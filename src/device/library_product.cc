#include "device/library_product.h"

namespace hybridnet::device {

bool library_product(ProductCall call, int64_t own_steps) {
  if (!pays_for_library(own_steps)) return false;
  auto* const library = library_of_backend<ProductLibrary>();
  if (!library) return false;
  call.reduced_float32 = reduces(call.dtype);
  const std::shared_ptr<const LibraryPlan> plan = library->plan(call);
  if (!plan) return false;
  push_to_library(*plan, "product of a library",
                  [&](void* workspace, Backend::Stream stream) { library->multiply(*plan, call, workspace, stream); });
  return true;
}

}  // namespace hybridnet::device
