#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "hybridnet/error.h"

namespace hybridnet {

void throw_file_error(const std::string& path, const char* doing, const char* fix) {
  throw FileError(
      {.input = path, .message = std::string("cannot ") + doing + " the file: " + std::strerror(errno), .fix = fix});
}

namespace {

using Write = std::function<bool(std::FILE*)>;

// The path with links resolved, or the path itself if that fails.
std::string without_links(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  std::free(real);
  return result;
}

// Syncs the new name to the disk, too; not every file system supports that.
void sync_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// Opens, writes and closes; false, and errno, if one of them fails. mode: permissions, or 0 for those of new files.
bool write_file(const std::string& path, const Write& write, mode_t mode) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  bool whole = false;
  try {
    whole = write(file);
  } catch (...) {
    std::fclose(file);
    throw;
  }
  if (mode != 0) fchmod(fileno(file), mode);
  whole = whole && std::fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL);
  const int why = errno;
  if (std::fclose(file) != 0 && whole) return false;
  errno = why;
  return whole;
}

}  // namespace

void replace_file(const std::string& path, const Write& write) {
  const std::string target = without_links(path);
  struct stat before = {};
  const bool exists = stat(target.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode)) {  // a device or a pipe is written to, and stays one
    if (write_file(target, write, 0)) return;
    throw_file_error(path, "write", "name a file");
  }
  // The number gives concurrent writers of one target different names.
  static std::atomic<unsigned> count{0};
  const std::string part = target + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".part";
  try {
    if (write_file(part, write, exists ? before.st_mode & 07777 : 0) &&
        std::rename(part.c_str(), target.c_str()) == 0) {
      sync_folder(target);
      return;
    }
  } catch (...) {
    std::remove(part.c_str());
    throw;
  }
  const int why = errno;
  std::remove(part.c_str());
  errno = why;
  throw_file_error(path, "write", "check that the folder exists and may be written, and the free space of the disk");
}

}  // namespace hybridnet
