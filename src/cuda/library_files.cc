#include "cuda/library_files.h"

#include <dlfcn.h>

#include <sstream>
#include <string_view>

#include "cuda/stand_in.h"

namespace hybridnet::cuda {
namespace {

// pip's folder of a CUDA version, below site-packages.
std::string pip_folder(const LibraryName& name, int version) {
  const std::string package = version >= 13 ? "cu" + std::to_string(version) : name.folder;
  return "nvidia/" + package + "/lib/";
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

std::vector<std::string> library_files(const LibraryName& name, const std::string& driver, const std::string& folders,
                                       const std::vector<int>& versions) {
  if (driver == kStandIn) return {stand_in_library()};
  std::vector<std::string> files;
  for (const int version : versions) {
    const std::string file = std::string(name.file) + "." + std::to_string(version), pip = pip_folder(name, version);
    for (const std::string& folder : split_path(folders))
      for (const std::string& below : {std::string(), pip, std::string("lib64/"), std::string("lib/")})
        files.push_back(folder + below + file);
    // libhybridnet.so is in site-packages/hybridnet.
    if (const std::string own = folder_of_this_library(); !own.empty()) files.push_back(own + "../" + pip + file);
    files.push_back(file);
  }
  return files;
}

std::string load_first(const LibraryName& name, const std::vector<std::string>& files,
                       const std::vector<Symbol*>& table, std::string* why_none) {
  std::string failures;
  for (const std::string& file : files) {
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      // A missing file is expected in most places; a file that exists and cannot be loaded is worth a word.
      const char* const text = dlerror();
      const std::string_view reason = text ? text : "no reason is known";
      if (reason.find("No such file") == std::string_view::npos) failures += "; " + std::string(reason);
      continue;
    }
    find_all(library, table);
    const Symbol* const missing = first_missing(table);
    if (!missing) return file;
    failures += "; " + file + " lacks the function " + missing->name;
  }
  *why_none = std::string("no ") + name.title + " was found among " + std::to_string(files.size()) +
              " places, of which the first is " + (files.empty() ? "none" : files.front()) + failures;
  return {};
}

std::string file_of(const Symbol& function, const std::string& otherwise) {
  Dl_info info;
  return dladdr(function.address, &info) != 0 && info.dli_fname ? info.dli_fname : otherwise;
}

}  // namespace hybridnet::cuda
