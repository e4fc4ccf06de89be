// Meetings of the processes of a group (Meeting in transport.h), by their address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "group/transport.h"

namespace hybridnet::group {

// "folder:/PATH": a folder that all processes see, writable by its owner only. "tcp://HOST:PORT": a server, which
// `hybridnet.launch` and the first process start; `token` is the secret that both sides prove to have.
// Throws ValueError for other addresses, GroupError if it cannot be reached.
std::unique_ptr<Meeting> open_meeting(const std::string& address, const std::string& token, int64_t timeout_ms);

}  // namespace hybridnet::group
