#include "group/folder_meeting.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr auto kFirstPause = milliseconds(1), kLongestPause = milliseconds(20);

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  bool is_open() const { return descriptor_ >= 0; }
  bool write(const void* data, size_t bytes) const {
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(descriptor_, from, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      from += written;
      bytes -= static_cast<size_t>(written);
    }
    return true;
  }
  // The number of bytes of the file, of which at most `capacity` are copied; -1 on failure.
  int64_t read(void* data, size_t capacity) const {
    struct stat state {};
    if (::fstat(descriptor_, &state) != 0) return -1;
    size_t done = 0;
    while (done < capacity) {
      const ssize_t got = ::read(descriptor_, static_cast<char*>(data) + done, capacity - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return -1;
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return state.st_size;
  }

 private:
  const int descriptor_;
};

class FolderMeeting final : public Meeting {
 public:
  explicit FolderMeeting(std::string folder) : folder_(std::move(folder)) {}

  // A file is written under another name and then linked to its own, so that no process reads a part of it, and so that
  // the first value of a key stays.
  bool put(const char* key, const void* data, size_t bytes) noexcept override {
    static std::atomic<uint64_t> number{0};
    if (!is_key(key)) return false;
    const std::string path = folder_ + "/" + key;
    const std::string draft =
        folder_ + "/.draft-" + std::to_string(::getpid()) + "-" + std::to_string(number.fetch_add(1));
    bool written = false;
    {
      const File file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
      written = file.is_open() && file.write(data, bytes);
    }
    const bool linked = written && ::link(draft.c_str(), path.c_str()) == 0;
    const bool exists = written && !linked && errno == EEXIST;
    ::unlink(draft.c_str());
    return linked || (exists && holds(path, data, bytes));
  }

  int64_t get(const char* key, void* data, size_t capacity, int64_t timeout_ms) noexcept override {
    if (!is_key(key)) return -1;
    const std::string path = folder_ + "/" + key;
    const auto end = Clock::now() + milliseconds(timeout_ms);
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      {
        const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
        if (file.is_open()) return file.read(data, capacity);
      }
      if (Clock::now() >= end) return -1;
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  static bool is_key(std::string_view key) {
    return !key.empty() && key.size() < 200 && key.front() != '.' && key.find('/') == key.npos;
  }
  static bool holds(const std::string& path, const void* data, size_t bytes) {
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file.is_open()) return false;
    std::string held(bytes, '\0');
    return file.read(held.data(), held.size()) == static_cast<int64_t>(bytes) &&
           std::memcmp(held.data(), data, bytes) == 0;
  }

  const std::string folder_;
};

}  // namespace

std::unique_ptr<Meeting> open_folder_meeting(const std::string& folder) {
  struct stat state {};
  if (::stat(folder.c_str(), &state) != 0 || !S_ISDIR(state.st_mode))
    throw GroupError({.message = "the processes cannot meet: there is no folder '" + folder + "'",
                      .fix = "make the folder, on a disk that all processes see, before they start"});
  if (state.st_uid != ::geteuid() || (state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw GroupError({.message = "the processes cannot meet in the folder '" + folder + "'",
                      .because = "another user owns it or may use it",
                      .fix = "use a folder of your own with mode 0700"});
  return std::make_unique<FolderMeeting>(folder);
}

}  // namespace hybridnet::group
