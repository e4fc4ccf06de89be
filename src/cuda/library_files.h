// Places where CUDA's libraries may be, and their loading. NVRTC, cuBLASLt and cuDNN are found in the same way.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <string>
#include <vector>

#include "cuda/symbol.h"

namespace hybridnet::cuda {

struct LibraryName {
  const char* title;  // "NVRTC"
  const char* file;   // "libnvrtc.so"; a version follows
  // The folder of pip's package, below nvidia/. Packages of CUDA 13 and later share another one, except for cuDNN's.
  const char* folder;
};

// Files that may be the library, the best first, for versions of the library in the order of preference: for the
// stand-in driver its library; else those in `folders` (HYBRIDNET_CUDA_PATH), of pip's packages beside ours, and of the
// system.
std::vector<std::string> library_files(const LibraryName& name, const std::string& driver, const std::string& folders,
                                       const std::vector<int>& versions);

// Loads the first of these files that has the required functions of the table; returns its path. Empty, and the reason,
// if there is none.
std::string load_first(const LibraryName& name, const std::vector<std::string>& files,
                       const std::vector<Symbol*>& table, std::string* why_none);

// The path from which the loader took a function; `otherwise` if it does not know.
std::string file_of(const Symbol& function, const std::string& otherwise);

}  // namespace hybridnet::cuda
