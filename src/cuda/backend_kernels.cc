// The kernels of CudaBackend: compiling, loading, launching.
#include <array>

#include "cuda/backend.h"
#include "cuda/errors.h"
#include "hybridnet/error.h"

namespace hybridnet::cuda {
namespace {

std::string size_text(const uint32_t (&size)[3]) {
  return "(" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + ", " + std::to_string(size[2]) + ")";
}

// Changes with every header that a kernel may include, and with the compiler's options.
std::string key_of_headers() {
  std::string all;
  for (const device::HeaderText& header : device::kernel_headers())
    all += ImageCache::key({header.name, header.text}) + "\n";
  for (const char* option : kCompilerOptions) all += std::string(option) + "\n";
  return all;
}

}  // namespace

std::vector<std::string> CudaBackend::compiler_files() const {
  return nvrtc_files(options_.driver, options_.library_folders, driver_version());
}

// A missing NVRTC is looked for again at the next kernel: it may have been installed meanwhile.
std::vector<std::pair<std::string, std::string>> CudaBackend::libraries() {
  std::vector<std::pair<std::string, std::string>> found{{"driver", "CUDA " + version_text(driver_version())}};
  try {
    const Compiler& nvrtc = compiler();
    found.emplace_back("NVRTC", nvrtc.version() + ", " + nvrtc.file());
  } catch (const Error& missing) {
    found.emplace_back("NVRTC", missing.fields().message);
  }
  found.emplace_back(kCublasLt.title, about_products());
  found.emplace_back(kCudnn.title, about_convolutions());
  return found;
}

const Compiler& CudaBackend::compiler() {
  const std::lock_guard lock(compiler_mutex_);
  if (compiler_) return *compiler_;
  std::string reason;
  compiler_ = Compiler::load(compiler_files(), &reason);
  if (compiler_) return *compiler_;
  throw EngineError(
      {.message = "CUDA: kernels cannot be compiled without NVRTC",
       .because = reason,
       .fix = "pip install hybridnet[gpu] (nvidia-cuda-nvrtc-cu12 for a driver of CUDA 12), or name NVRTC's folder "
              "in HYBRIDNET_CUDA_PATH"});
}

// All that images depend on except the text, the architecture and the compiler.
const std::string& CudaBackend::source_key() {
  std::call_once(source_key_once_, [this] { source_key_ = key_of_headers(); });
  return source_key_;
}

std::string CudaBackend::compile(std::string_view text, std::string_view architecture, device::ImageKind kind) {
  enter();
  const std::string form = std::string(architecture) + (kind == device::ImageKind::kLinkedByDriver ? " PTX" : "");
  const auto key_for = [&](const std::string& identity) {
    return ImageCache::key({text, source_key(), form, identity});
  };
  bool loaded = false;
  {
    const std::lock_guard lock(compiler_mutex_);
    loaded = compiler_ != nullptr;
  }
  // A process whose kernels are all known loads no compiler.
  if (const std::string expected = loaded ? "" : expected_identity(compiler_files()); !expected.empty())
    if (std::optional<std::string> known = images_.read(key_for(expected))) return std::move(*known);
  const Compiler& compiler = this->compiler();
  const std::string key = key_for(compiler.identity());
  if (std::optional<std::string> known = images_.read(key)) return std::move(*known);
  std::string image = compiler.compile(text, compiler.target_for(architecture), device::kernel_headers(), kind);
  images_.write(key, image);
  return image;
}

device::Backend::Module CudaBackend::load(std::string_view image) {
  use_some_device();
  const std::string text(image);  // PTX must end with a zero
  std::array<char, 8192> log{};
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  ModuleHandle module = nullptr;
  const Result result = driver_->module_load(&module, text.data(), 2, options, values);
  if (result != kSuccess) throw_failure(result, driver_->module_load.name, log.data());
  const std::lock_guard lock(mutex_);
  modules_.emplace_back(current_device(), module);
  return module;
}

device::Backend::Function CudaBackend::function(Module module, const char* entry) {
  use_some_device();
  FunctionHandle function = nullptr;
  const Result result = driver_->module_function(&function, static_cast<ModuleHandle>(module), entry);
  if (result != kSuccess) throw_failure(result, driver_->module_function.name, std::string("kernel '") + entry + "'");
  const std::lock_guard lock(mutex_);
  names_.emplace(function, entry);
  return function;
}

void CudaBackend::throw_launch_failure(Result result, const char* failed, Function function,
                                       const device::Geometry& geometry) {
  std::string name = "unknown";
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = names_.find(function); known != names_.end()) name = known->second;
  }
  throw_failure(result, failed,
                "kernel '" + name + "', grid " + size_text(geometry.grid) + ", block " + size_text(geometry.block));
}

void CudaBackend::launch(Function function, const device::Geometry& geometry, Stream stream, const void* arguments,
                         size_t bytes) {
  use_some_device();
  const StreamHandle on = reinterpret_cast<StreamHandle>(stream);
  void* parameters[] = {const_cast<void*>(arguments)};  // the driver knows their sizes from the image
  const auto& [grid, block] = geometry;
  const Result result = driver_->launch(static_cast<FunctionHandle>(function), grid[0], grid[1], grid[2], block[0],
                                        block[1], block[2], 0, on, parameters, nullptr);
  if (result != kSuccess) [[unlikely]]
    throw_launch_failure(result, driver_->launch.name, function, geometry);
  if (!options_.synchronous) [[likely]]
    return;
  if (const Result waited = wait_unless_recording(on); waited != kSuccess)
    throw_launch_failure(waited, driver_->stream_synchronize.name, function, geometry);
}

// A stream that records a graph cannot be waited for: nothing runs yet.
Result CudaBackend::wait_unless_recording(StreamHandle stream) {
  int status = 0;
  if (driver_->is_capturing) call(driver_->is_capturing, stream, &status);
  return status != 0 ? kSuccess : driver_->stream_synchronize(stream);
}

}  // namespace hybridnet::cuda
