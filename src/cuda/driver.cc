#include "cuda/driver.h"

#include <dlfcn.h>

#include "cuda/errors.h"
#include "cuda/stand_in.h"

namespace hybridnet::cuda {
namespace {

constexpr const char* kSystemDriver = "libcuda.so.1";

std::string loader_error() {
  const char* text = dlerror();
  return text ? text : "no reason is known";
}

// The loader's text is a reason only if the library exists and is broken, or its path was named by the user.
std::string why_not_loaded(const std::string& wanted, const std::string& loader) {
  if (!wanted.empty()) return "the driver of HYBRIDNET_CUDA_DRIVER=" + wanted + " cannot be loaded: " + loader;
  if (loader.starts_with(std::string(kSystemDriver) + ":") && loader.find("No such file") != std::string::npos)
    return std::string(kSystemDriver) + " was not found: no NVIDIA driver is installed";
  return std::string(kSystemDriver) + " cannot be loaded: " + loader;
}

std::string why_too_old(const Driver& driver) {
  int version = 0;
  if (const Result result = driver.driver_version(&version); result != kSuccess)
    return "the driver's version is unknown: cuDriverGetVersion failed: " + error_text(result);
  if (version >= kOldestDriver) return {};
  return "the driver is older than CUDA " + version_text(kOldestDriver) + " (version " + version_text(version) + ")";
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// An old driver may lack functions, so its version is the better reason, if it is known.
std::string why_unusable(const Driver& driver) {
  const Symbol* const missing = first_missing(driver.table());
  std::string old = driver.driver_version ? why_too_old(driver) : std::string();
  if (!old.empty() || !missing) return old;
  return std::string("the driver lacks the function ") + missing->name + ", which drivers have since CUDA " +
         version_text(missing->since);
}

std::unique_ptr<const Driver> load_driver(const std::string& wanted, std::string* why_none) {
  if (wanted == "none") {
    *why_none = "HYBRIDNET_CUDA_DRIVER=none: GPUs are turned off";
    return nullptr;
  }
  const std::string file = wanted.empty() ? kSystemDriver : wanted == kStandIn ? stand_in_library() : wanted;
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *why_none = why_not_loaded(wanted, loader_error());
    return nullptr;
  }
  auto driver = std::make_unique<Driver>();
  find_all(library, driver->table());
  set_error_names(reinterpret_cast<ErrorNameFunction>(driver->error_name.address));
  *why_none = why_unusable(*driver);
  if (!why_none->empty()) return nullptr;  // the library stays loaded: it may have started threads
  return driver;
}

}  // namespace hybridnet::cuda
