#include "base/cache_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

namespace hybridnet {

TextHash& TextHash::add(std::string_view text) {
  for (const char c : text) {
    a = (a ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    b = (b + static_cast<uint8_t>(c) + 1) * 0xff51afd7ed558ccdu;
    b ^= b >> 29;
  }
  return *this;
}

std::string TextHash::str() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text;
}

bool make_own_folder(const std::string& path) {
  if (path.empty() || path[0] != '/') return false;
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    mkdir(path.substr(0, at).c_str(), S_IRWXU);
  mkdir(path.c_str(), S_IRWXU);
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
         (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 && access(path.c_str(), W_OK) == 0;
}

std::optional<std::string> read_own_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return std::nullopt;
  std::optional<std::string> content;
  struct stat about {};
  constexpr off_t kLargest = off_t{64} << 20;
  const bool own = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid() &&
                   (about.st_mode & (S_IWGRP | S_IWOTH)) == 0 && about.st_size <= kLargest;
  if (own) {
    content.emplace(static_cast<size_t>(about.st_size), '\0');
    size_t done = 0;
    while (done < content->size()) {
      const ssize_t count = read(file, content->data() + done, content->size() - done);
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    if (done != content->size()) content.reset();
  }
  close(file);
  return content;
}

}  // namespace hybridnet
