// Loading of shared objects that contain operators and rules.
#pragma once

#include <string>
#include <vector>

namespace hybridnet::c_api {

struct LibraryContents {
  std::vector<std::string> operators, rules;  // names
};

// Loads the shared object and registers all declarations of its hn_library_init and hn_library_init_rules, or none.
// Throws FileError if it cannot be loaded or has neither function, ParamError for a wrong declaration.
LibraryContents load_library(const std::string& path);

}  // namespace hybridnet::c_api
