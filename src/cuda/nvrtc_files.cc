// Places where an NVRTC may be.
#include <sys/stat.h>

#include "cuda/nvrtc.h"
#include "cuda/stand_in.h"

namespace hybridnet::cuda {

std::vector<std::string> nvrtc_files(const std::string& driver, const std::string& folders, int driver_version) {
  std::vector<int> versions = {13, 12};
  if (driver_version < 13000) versions = {12, 13};
  std::vector<std::string> files = library_files(kNvrtc, driver, folders, versions);
  if (driver != kStandIn) files.push_back(kNvrtc.file);
  return files;
}

std::string nvrtc_identity(const std::string& file) {
  struct stat about {};
  if (stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return {};
  return file.substr(file.rfind('/') + 1) + " " + std::to_string(about.st_size);
}

std::string expected_identity(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    if (file.find('/') == std::string::npos || file == stand_in_library()) return {};  // the loader decides
    if (std::string identity = nvrtc_identity(file); !identity.empty()) return identity;
  }
  return {};
}

}  // namespace hybridnet::cuda
