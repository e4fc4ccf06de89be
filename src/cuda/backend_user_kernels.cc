// Kernels of users in CudaBackend: text with several parameters a kernel, options, and C++ names.
#include "cuda/backend.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {
namespace {

constexpr uint32_t kSharedBytesWithoutRequest = 48 << 10;

std::string key_of(const device::UserSource& source, const std::string& headers, std::string_view architecture,
                   const std::string& compiler) {
  std::string options, exports;
  for (const std::string& option : source.options) options += ImageCache::key({option}) + "\n";
  for (const std::string& name : source.exports) exports += ImageCache::key({name}) + "\n";
  return ImageCache::key({"user's text", source.text, options, exports, headers, architecture, compiler});
}

// Headers in folders of the user may change without notice: images made with them are not kept.
bool may_be_kept(const device::UserSource& source) {
  for (const std::string& option : source.options)
    if (option.starts_with("-I") || option.starts_with("--include-path") || option.starts_with("-include") ||
        option.starts_with("--pre-include"))
      return false;
  return source.text.find("#include \"") == std::string::npos;
}

// A kept image begins with its symbols: a line for each, then a zero byte.
std::string packed(const device::UserImage& image) {
  std::string all;
  for (const std::string& symbol : image.symbols) all += symbol + "\n";
  return all + '\0' + image.image;
}

device::UserImage unpacked(const std::string& all) {
  device::UserImage image;
  const size_t end = all.find('\0');
  for (size_t at = 0; at < end;) {
    const size_t line = all.find('\n', at);
    image.symbols.push_back(all.substr(at, line - at));
    at = line + 1;
  }
  image.image = all.substr(end + 1);
  return image;
}

}  // namespace

device::UserImage CudaBackend::compile(const device::UserSource& source, std::string_view architecture) {
  enter();
  const Compiler& compiler = this->compiler();
  const std::string key = key_of(source, source_key(), architecture, compiler.identity());
  const bool keeps = may_be_kept(source);
  if (keeps)
    if (const std::optional<std::string> known = images_.read(key)) return unpacked(*known);
  device::UserImage image = compiler.compile(source, compiler.target_for(architecture), device::kernel_headers());
  if (keeps) images_.write(key, packed(image));
  return image;
}

device::Backend::Function CudaBackend::find_function(Module module, const char* entry) {
  use_some_device();
  FunctionHandle function = nullptr;
  const Result result = driver_->module_function(&function, static_cast<ModuleHandle>(module), entry);
  if (result == kNotFound) {
    note_handled(result);
    return nullptr;
  }
  if (result != kSuccess) throw_failure(result, driver_->module_function.name, std::string("kernel '") + entry + "'");
  const std::lock_guard lock(mutex_);
  names_.emplace(function, entry);
  return function;
}

std::optional<std::vector<size_t>> CudaBackend::parameter_bytes(Function function) {
  if (!driver_->parameter_info) return std::nullopt;
  use_some_device();
  std::vector<size_t> sizes;
  size_t offset = 0, bytes = 0;
  const auto ask = [&] {
    return driver_->parameter_info(static_cast<FunctionHandle>(function), sizes.size(), &offset, &bytes);
  };
  Result result = kSuccess;
  for (result = ask(); result == kSuccess; result = ask()) sizes.push_back(bytes);
  // The driver has no count: it refuses the first index behind the last parameter.
  if (result != kInvalidValue) check(result, driver_->parameter_info.name);
  note_handled(result);
  return sizes;
}

void CudaBackend::launch(Function function, const device::Geometry& geometry, uint32_t shared_bytes, Stream stream,
                         std::span<void* const> parameters) {
  use_some_device();
  const FunctionHandle kernel = static_cast<FunctionHandle>(function);
  if (shared_bytes > kSharedBytesWithoutRequest && driver_->set_function_attribute)
    call(driver_->set_function_attribute, kernel, kMaxDynamicSharedBytes, static_cast<int>(shared_bytes));
  const StreamHandle on = reinterpret_cast<StreamHandle>(stream);
  const auto& [grid, block] = geometry;
  const Result result = driver_->launch(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes,
                                        on, const_cast<void**>(parameters.data()), nullptr);
  if (result != kSuccess) [[unlikely]]
    throw_launch_failure(result, driver_->launch.name, function, geometry);
  if (options_.synchronous) [[unlikely]]
    if (const Result waited = wait_unless_recording(on); waited != kSuccess)
      throw_launch_failure(waited, driver_->stream_synchronize.name, function, geometry);
}

}  // namespace hybridnet::cuda
