#include "base/library_folder.h"

#include <dlfcn.h>

namespace hybridnet {

std::string folder_of_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || !info.dli_fname) return "";
  const std::string file(info.dli_fname);
  return file.substr(0, file.rfind('/') + 1);
}

}  // namespace hybridnet
