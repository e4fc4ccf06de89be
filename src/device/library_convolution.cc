#include "device/library_convolution.h"

namespace hybridnet::device {

bool library_convolution(ConvolutionCall call, int64_t own_steps) {
  if (!pays_for_library(own_steps)) return false;
  auto* const library = library_of_backend<ConvolutionLibrary>();
  if (!library) return false;
  call.reduced_float32 = reduces(call.dtype);
  const std::shared_ptr<const LibraryPlan> plan = library->plan(call);
  if (!plan) return false;
  push_to_library(*plan, "convolution of a library",
                  [&](void* workspace, Backend::Stream stream) { library->convolve(*plan, call, workspace, stream); });
  return true;
}

}  // namespace hybridnet::device
