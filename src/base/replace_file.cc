#include "base/replace_file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "hybridnet/error.h"

namespace hybridnet {

void throw_file_error(const std::string& path, const char* doing, const char* fix) {
  throw FileError(
      {.input = path, .message = std::string("cannot ") + doing + " the file: " + std::strerror(errno), .fix = fix});
}

void replace_file(const std::string& path, const std::function<bool(std::FILE*)>& write) {
  // The number keeps two writers of one target apart.
  static std::atomic<unsigned> count{0};
  const std::string part = path + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".part";
  std::FILE* file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) throw_file_error(path, "write", "check that the folder exists and may be written");
  bool whole = false;
  try {
    whole = write(file);
  } catch (...) {
    std::fclose(file);
    std::remove(part.c_str());
    throw;
  }
  whole = whole && std::fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL);
  int why = errno;
  if (std::fclose(file) != 0 && whole) whole = false, why = errno;
  if (whole && std::rename(part.c_str(), path.c_str()) == 0) return;
  if (whole) why = errno;
  std::remove(part.c_str());
  errno = why;
  throw_file_error(path, "write", "check the free space of the disk");
}

}  // namespace hybridnet
