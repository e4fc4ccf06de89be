// CUDA text that a user wrote, and its compiled form.
#pragma once

#include <string>
#include <vector>

namespace hybridnet::device {

struct UserSource {
  std::string text;
  std::vector<std::string> options;  // compiler options without the architecture
  std::vector<std::string> exports;  // C++ names ("scale<float>") of kernels that are not extern "C"
  bool operator<(const UserSource& o) const {
    return text != o.text ? text < o.text : options != o.options ? options < o.options : exports < o.exports;
  }
};

struct UserImage {
  std::string image;                 // for Backend::load()
  std::vector<std::string> symbols;  // for find_function(), parallel to UserSource::exports
};

}  // namespace hybridnet::device
