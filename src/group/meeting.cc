#include "group/meeting.h"

#include <string_view>

#include "group/folder_meeting.h"
#include "group/tcp_meeting.h"
#include "hybridnet/error.h"

namespace hybridnet::group {

std::unique_ptr<Meeting> open_meeting(const std::string& address, const std::string& token, int64_t timeout_ms) {
  constexpr std::string_view kFolder = "folder:", kTcp = "tcp://";
  if (address.starts_with(kFolder) && address.size() > kFolder.size())
    return open_folder_meeting(address.substr(kFolder.size()));
  if (address.starts_with(kTcp)) return open_tcp_meeting(address.substr(kTcp.size()), token, timeout_ms);
  throw ValueError({.expected = "folder:/PATH or tcp://HOST:PORT",
                    .given = "'" + address + "'",
                    .message = "the address at which the processes of a group meet",
                    .fix = "start the program by `python -m hybridnet.launch`, or set HYBRIDNET_GROUP_STORE"});
}

}  // namespace hybridnet::group
