// How a process joins a group.
#pragma once

#include <cstdint>
#include <string>

namespace hybridnet::group {

struct Settings {
  int rank = 0, size = 1;
  int shards = 0;       // parts of sums, whatever the size is; 0: one for each process
  std::string meeting;  // address (meeting.h)
  std::string token;    // the secret of the job
  std::string address = "127.0.0.1";
  std::string engine = "gloo";
  std::string name = "0";  // distinguishes the groups that meet in one place, one after the other
  int64_t timeout_ms = 60'000;
  uint64_t communicator = 0;  // that of TransportRequest
};

// The settings in HYBRIDNET_GROUP_*. Throws FileError if the token cannot be read, ValueError if it is too short.
Settings settings_from_environment();
// Reads a secret. Throws FileError if the file cannot be read or others may read it, ValueError if it is too short.
std::string read_token(const std::string& path);

}  // namespace hybridnet::group
