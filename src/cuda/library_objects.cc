#include "cuda/library_objects.h"

#include "device/last_launches.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {

void throw_library_failure(const LibraryFailure& failure) {
  ErrorFields fields{
      .given = failure.given,
      .message = std::string("CUDA: ") + failure.function + " failed: " + failure.status,
      .fix = std::string("HYBRIDNET_CUDA_LIBRARIES=0 computes ") + failure.work + " with HybridNet's own kernels"};
  if (const std::string launches = device::last_launches(); failure.is_of_device && !launches.empty())
    fields.because = "an earlier kernel may be the cause; the last ones, newest first: " + launches;
  throw EngineError(std::move(fields));
}

}  // namespace hybridnet::cuda
