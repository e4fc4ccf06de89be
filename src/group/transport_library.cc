#include "group/transport_library.h"

#include <dlfcn.h>

#include "base/library_folder.h"
#include "hybridnet/error.h"

namespace hybridnet::group {

MakeTransportFunction load_transport(const std::string& engine) {
  const std::string path = folder_of_this_library() + "libhybridnet_" + engine + ".so";
  const auto fail = [&engine](const std::string& because) {
    throw UnsupportedError({.message = "processes cannot form a group by the engine '" + engine + "'",
                            .because = because,
                            .fix = "install Gloo (Debian/Ubuntu: apt-get install libgloo-dev) and build again"});
  };
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(::dlerror());
  const auto abi = reinterpret_cast<TransportAbiFunction>(::dlsym(library, kTransportAbiName));
  const auto make = reinterpret_cast<MakeTransportFunction>(::dlsym(library, kMakeTransportName));
  if (abi == nullptr || make == nullptr || abi() != kTransportAbi) fail(path + " belongs to another version");
  return make;
}

}  // namespace hybridnet::group
