#include "cuda/library_folder.h"

#include <dlfcn.h>

namespace hybridnet::cuda {

std::string folder_of_this_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || !info.dli_fname) return "";
  const std::string file(info.dli_fname);
  return file.substr(0, file.rfind('/') + 1);
}

std::string stand_in_library() { return folder_of_this_library() + "libhnstandin.so"; }

}  // namespace hybridnet::cuda
