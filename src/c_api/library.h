// Shared objects that bring operators and rules.
#pragma once

#include <string>
#include <vector>

namespace hybridnet::c_api {

struct LibraryContents {
  std::vector<std::string> operators, rules;  // names
};

// Loads the shared object and registers what its hn_library_init and hn_library_init_rules declare, all or nothing.
// Throws FileError where it cannot be loaded or has neither, ParamError for a declaration.
LibraryContents load_library(const std::string& path);

}  // namespace hybridnet::c_api
