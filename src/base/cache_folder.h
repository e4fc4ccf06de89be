// Files of a folder that belongs to the user: made code, which later processes load. Nothing here throws: a file or
// folder that cannot be used is not there.
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hybridnet {

// 128 bits that name a text, the same in every process. Not for secrets.
struct TextHash {
  uint64_t a = 0xcbf29ce484222325u, b = 0x9e3779b97f4a7c15u;
  TextHash& add(std::string_view text);
  std::string str() const;  // 32 hexadecimal digits
};

// Makes a folder that only the user may write, with its parents; false if that is not possible, or if the path is not
// absolute.
bool make_own_folder(const std::string& path);

// The content of a regular file of at most 64 MB that belongs to the user and that no other user may write.
std::optional<std::string> read_own_file(const std::string& path);

}  // namespace hybridnet
