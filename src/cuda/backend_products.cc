// Products by cuBLASLt in CudaBackend.
#include "cuda/backend.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {

// Looked for once: a product asks each time. Null, and the reason in why_no_products_, if there is none.
Products* CudaBackend::products() {
  std::call_once(products_once_, [this] {
    if (!options_.cublas_lt) {
      why_no_products_ = "turned off by HYBRIDNET_CUDA_LIBRARIES";
      return;
    }
    int version = 0;
    call(driver_->driver_version, &version);
    products_ = Products::load(cublas_lt_files(options_.driver, options_.library_folders, version), &why_no_products_);
  });
  return products_.get();
}

std::string CudaBackend::about_products() {
  if (Products* const found = products()) return found->version() + ", " + found->file();
  return why_no_products_;
}

std::shared_ptr<const device::ProductLibrary::Plan> CudaBackend::plan(const device::ProductCall& call) {
  use_some_device();
  Products* const library = products();
  return library ? library->plan(call, current_device()) : nullptr;
}

void CudaBackend::multiply(const Plan& plan, const device::ProductCall& call, void* workspace, Stream stream) {
  use_some_device();
  const StreamHandle on = reinterpret_cast<StreamHandle>(stream);
  products_->run(plan, call, workspace, on);
  if (!options_.synchronous) [[likely]]
    return;
  if (const Result waited = wait_unless_recording(on); waited != kSuccess)
    throw_failure(waited, driver_->stream_synchronize.name, text_of(call));
}

}  // namespace hybridnet::cuda
