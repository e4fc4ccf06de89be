#include "group/transport_library.h"

#include <dlfcn.h>

#include "base/library_folder.h"
#include "group/mpi_library.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

struct Engine {
  const char* name;
  const char* library;
  const char* fix;
};
constexpr Engine kEngines[] = {
    {"gloo", "libhybridnet_gloo.so", "install Gloo (Debian/Ubuntu: apt-get install libgloo-dev) and build again"},
    {"mpich", "libhybridnet_mpi_mpich.so", "install the headers of MPICH (`tools/dev` does) and build again"},
    {"openmpi", "libhybridnet_mpi_ompi.so", "install the headers of Open MPI (`tools/dev` does) and build again"}};

const Engine& engine_of(const std::string& name) {
  for (const Engine& engine : kEngines)
    if (name == engine.name) return engine;
  throw ValueError({.expected = "gloo, mpich or openmpi", .given = "'" + name + "'", .message = "engine of a group"});
}

}  // namespace

TransportLibrary load_transport(const std::string& engine) {
  const Engine& known = engine_of(engine);
  const std::string path = folder_of_this_library() + known.library;
  const auto fail = [&](const std::string& because) {
    throw UnsupportedError({.message = "processes cannot form a group by the engine '" + engine + "'",
                            .because = because,
                            .fix = known.fix});
  };
  if (engine != "gloo") load_mpi(engine);
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(::dlerror());
  const auto abi = reinterpret_cast<TransportAbiFunction>(::dlsym(library, kTransportAbiName));
  const TransportLibrary found{reinterpret_cast<MakeTransportFunction>(::dlsym(library, kMakeTransportName)),
                               reinterpret_cast<OpenMeetingFunction>(::dlsym(library, kOpenMeetingName))};
  if (abi == nullptr || found.make == nullptr || abi() != kTransportAbi) fail(path + " belongs to another version");
  return found;
}

}  // namespace hybridnet::group
