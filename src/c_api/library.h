// Shared objects that bring operators.
#pragma once

#include <string>
#include <vector>

namespace hybridnet::c_api {

// Loads the shared object and registers what its hn_library_init declares, all or nothing. Returns the names of the
// operators. Throws FileError where it cannot be loaded or has no hn_library_init, ParamError for a declaration.
std::vector<std::string> load_library(const std::string& path);

}  // namespace hybridnet::c_api
