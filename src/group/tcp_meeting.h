// A meeting at a server (python/hybridnet/_meeting_server.py), by TCP.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "group/transport.h"

namespace hybridnet::group {

// `place`: "HOST:PORT". Each request is a connection of its own, on which both sides prove that they know the token.
// Throws ValueError for another format.
std::unique_ptr<Meeting> open_tcp_meeting(const std::string& place, const std::string& token, int64_t timeout_ms);

}  // namespace hybridnet::group
