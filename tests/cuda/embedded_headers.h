// The headers for compiled text, as strings of the library: it works wherever its file is moved.
// Threads: constant.
#pragma once

#include <string_view>
#include <vector>

namespace standin {

struct EmbeddedHeader {
  const char* name;
  std::string_view text;
};
const std::vector<EmbeddedHeader>& embedded_headers();

}  // namespace standin
