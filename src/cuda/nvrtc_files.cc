// Places where an NVRTC may be.
#include <sys/stat.h>

#include <sstream>

#include "cuda/nvrtc.h"
#include "cuda/stand_in.h"

namespace hybridnet::cuda {
namespace {

// pip's folder of a CUDA version, below site-packages.
std::string pip_folder(int major) {
  return major >= 13 ? "nvidia/cu" + std::to_string(major) + "/lib/" : "nvidia/cuda_nvrtc/lib/";
}

// The folders of a path, each with a slash at the end; relative ones are left out, as they change with the process.
std::vector<std::string> split_path(const std::string& folders) {
  std::vector<std::string> split;
  std::istringstream rest(folders);
  for (std::string folder; std::getline(rest, folder, ':');) {
    if (folder.empty() || folder[0] != '/') continue;
    if (folder.back() != '/') folder += '/';
    split.push_back(folder);
  }
  return split;
}

}  // namespace

std::vector<std::string> nvrtc_files(const std::string& driver, const std::string& folders, int driver_version) {
  if (driver == kStandIn) return {stand_in_library()};
  std::vector<int> majors = {13, 12};
  if (driver_version < 13000) majors = {12, 13};
  std::vector<std::string> files;
  for (const int major : majors) {
    const std::string name = "libnvrtc.so." + std::to_string(major);
    for (const std::string& folder : split_path(folders))
      for (const std::string& below : {std::string(), pip_folder(major), std::string("lib64/"), std::string("lib/")})
        files.push_back(folder + below + name);
    // libhybridnet.so is in site-packages/hybridnet.
    if (const std::string own = folder_of_this_library(); !own.empty())
      files.push_back(own + "../" + pip_folder(major) + name);
    files.push_back(name);
  }
  files.push_back("libnvrtc.so");
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
