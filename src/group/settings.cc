#include "group/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/replace_file.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"

namespace hybridnet::group {
namespace {

constexpr size_t kMinTokenBytes = 32, kMaxTokenBytes = 4096;

}  // namespace

std::string read_token(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw_file_error(path, "read", "start the program by `python -m hybridnet.launch`");
  struct stat state {};
  std::string token(kMaxTokenBytes, '\0');
  const bool is_private = ::fstat(file, &state) == 0 && (state.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  const ssize_t bytes = ::read(file, token.data(), token.size());
  ::close(file);
  if (!is_private)
    throw FileError({.message = "the file '" + path + "' holds the token of a job and may be read by others",
                     .fix = "chmod 600 '" + path + "'"});
  token.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
  if (token.size() < kMinTokenBytes)
    throw ValueError({.expected = "at least 32 bytes",
                      .given = std::to_string(token.size()),
                      .message = "the token of the job in '" + path + "'",
                      .fix = "write 32 random bytes: head -c 32 /dev/urandom"});
  return token;
}

Settings settings_from_environment() {
  const Environment& env = environment();
  return {.rank = env.group_rank,
          .size = env.group_size,
          .shards = env.group_shards,
          .meeting = env.group_store,
          .token = env.group_token_file.empty() ? std::string() : read_token(env.group_token_file),
          .address = env.group_address,
          .engine = env.group_engine,
          .name = env.group_name,
          .timeout_ms = env.group_timeout_ms};
}

}  // namespace hybridnet::group
