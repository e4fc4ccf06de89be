// Products by cuBLASLt and convolutions by cuDNN in CudaBackend. Each library is looked for once: products and
// convolutions ask each time.
#include "cuda/backend.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {
namespace {

constexpr const char* kTurnedOff = "turned off by HYBRIDNET_CUDA_LIBRARIES";

template <class Library>
std::string about(const Library* found, const std::string& why_none) {
  return found ? found->version() + ", " + found->file() : why_none;
}

}  // namespace

int CudaBackend::driver_version() const {
  int version = 0;
  call(driver_->driver_version, &version);
  return version;
}

// Null, and the reason in why_no_products_, if there is none.
Products* CudaBackend::products() {
  std::call_once(products_once_, [this] {
    why_no_products_ = kTurnedOff;
    if (!options_.cublas_lt) return;
    const auto files = cublas_lt_files(options_.driver, options_.library_folders, driver_version());
    products_ = Products::load(files, &why_no_products_);
  });
  return products_.get();
}

// Null, and the reason in why_no_convolutions_, if there is none.
Convolutions* CudaBackend::convolutions() {
  std::call_once(convolutions_once_, [this] {
    why_no_convolutions_ = kTurnedOff;
    if (!options_.cudnn) return;
    const auto wait = [this](StreamHandle stream) { note_handled(driver_->stream_synchronize(stream)); };
    auto found = Convolutions::load(cudnn_files(options_.driver, options_.library_folders), driver_version(), wait,
                                    &why_no_convolutions_);
    if (found && has_libraries_for(*found)) convolutions_ = std::move(found);
  });
  return convolutions_.get();
}

// cuDNN loads cuBLASLt and NVRTC by their names when an engine needs them, and ends the process if the loader does not
// find them. What is loaded already is found by its name, wherever it lies.
bool CudaBackend::has_libraries_for(const Convolutions& found) {
  for (const LibraryName& name : {kCublasLt, kNvrtc}) {
    const auto files = library_files(name, options_.driver, options_.library_folders, {found.cuda_version()});
    std::string why_none;
    if (!load_first(name, files, {}, &why_none).empty()) continue;
    why_no_convolutions_ = found.file() + " needs " + name.title + ": " + why_none;
    return false;
  }
  return true;
}

std::string CudaBackend::about_products() { return about(products(), why_no_products_); }
std::string CudaBackend::about_convolutions() { return about(convolutions(), why_no_convolutions_); }

std::shared_ptr<const device::LibraryPlan> CudaBackend::plan(const device::ProductCall& call) {
  use_some_device();
  Products* const library = products();
  return library ? library->plan(call, current_device()) : nullptr;
}

std::shared_ptr<const device::LibraryPlan> CudaBackend::plan(const device::ConvolutionCall& call) {
  use_some_device();
  Convolutions* const library = convolutions();
  return library ? library->plan(call, current_device()) : nullptr;
}

// A library's work on a stream, which HYBRIDNET_CUDA_SYNC waits for, so that an error names it.
template <class Library, class Call>
void CudaBackend::run(const Library& library, const device::LibraryPlan& plan, const Call& call, void* workspace,
                      Stream stream) {
  use_some_device();
  const StreamHandle on = reinterpret_cast<StreamHandle>(stream);
  library.run(plan, call, workspace, on);
  if (!options_.synchronous) [[likely]]
    return;
  if (const Result waited = wait_unless_recording(on); waited != kSuccess)
    throw_failure(waited, driver_->stream_synchronize.name, text_of(call));
}

void CudaBackend::multiply(const device::LibraryPlan& plan, const device::ProductCall& call, void* workspace,
                           Stream stream) {
  run(*products_, plan, call, workspace, stream);
}

void CudaBackend::convolve(const device::LibraryPlan& plan, const device::ConvolutionCall& call, void* workspace,
                           Stream stream) {
  run(*convolutions_, plan, call, workspace, stream);
}

}  // namespace hybridnet::cuda
