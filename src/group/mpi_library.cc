#include "group/mpi_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/library_folder.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

namespace fs = std::filesystem;

// Names that belong to a binary interface, whatever the release is.
std::vector<std::string> names_of(const std::string& engine) {
  if (engine == "openmpi") return {"libmpi.so.40"};
  return {"libmpi.so.12", "libmpich.so.12"};  // the second one: Debian
}

int parent_of(int process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  if (name_end == text.npos || name_end + 4 >= text.size()) return 0;
  return std::atoi(text.c_str() + name_end + 4);  // after the state
}

// The folder of the program that started this process for mpirun, on this machine; empty if there is none.
fs::path launcher_folder() {
  constexpr std::string_view kLaunchers[] = {"hydra_pmi_proxy", "prted", "prterun", "prte", "orted", "orterun"};
  constexpr int kGenerations = 8;  // mpirun may start a script
  int process = ::getppid();
  for (int i = 0; i < kGenerations && process > 1; ++i, process = parent_of(process)) {
    std::error_code failed;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(process) + "/exe", failed);
    for (const std::string_view name : kLaunchers)
      if (!failed && program.filename() == name) return program.parent_path();
  }
  return {};
}

// Files, and names for the loader, in the order in which they are tried.
std::vector<std::string> candidates(const std::string& engine) {
  std::vector<std::string> found;
  const fs::path launcher = launcher_folder();
  for (const std::string& name : names_of(engine)) {
    if (launcher.empty()) break;
    for (const char* folder : {"../lib", "../lib64"}) {
      std::error_code failed;
      const fs::path file = fs::weakly_canonical(launcher / folder / name, failed);
      if (!failed && fs::exists(file, failed)) found.push_back(file);
    }
  }
  for (const std::string& name : names_of(engine)) found.push_back(name);
  for (const std::string& name : names_of(engine)) found.push_back(folder_of_this_library() + "../../../" + name);
  return found;
}

void* load(const std::string& file, int flags, std::string* tried) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL | flags);
  if (library == nullptr && tried != nullptr) {
    const char* const reason = ::dlerror();
    *tried += (tried->empty() ? "" : "; ") + std::string(reason == nullptr ? file : reason);
  }
  return library;
}

void* find(const std::string& engine, std::string* tried) {
  if (const std::string& named = environment().mpi_library; !named.empty()) return load(named, 0, tried);
  for (const std::string& name : names_of(engine))
    if (void* const library = load(name, RTLD_NOLOAD, nullptr)) return library;
  for (const std::string& file : candidates(engine))
    if (void* const library = load(file, 0, tried)) return library;
  return nullptr;
}

}  // namespace

void load_mpi(const std::string& engine) {
  std::string tried;
  const std::string title = engine == "openmpi" ? "Open MPI" : "MPICH or an MPI with its binary interface";
  void* const library = find(engine, &tried);
  if (library == nullptr)
    throw UnsupportedError({.message = "processes cannot form a group by the engine '" + engine + "'",
                            .because = title + " was not found: " + tried,
                            .fix = "set HYBRIDNET_MPI_LIBRARY to the libmpi.so of the mpirun that starts the program"});
  // A wrong one would misread every handle.
  const bool is_open_mpi = ::dlsym(library, "ompi_mpi_comm_world") != nullptr;
  if (::dlsym(library, "MPI_Init_thread") == nullptr || is_open_mpi != (engine == "openmpi"))
    throw UnsupportedError({.message = "processes cannot form a group by the engine '" + engine + "'",
                            .because = "the library in HYBRIDNET_MPI_LIBRARY is not " + title,
                            .fix = "correct or unset HYBRIDNET_MPI_LIBRARY, or set HYBRIDNET_GROUP_ENGINE"});
}

}  // namespace hybridnet::group
