// The libraries that move bytes: libhybridnet_gloo.so beside libhybridnet.so.
// Threads: any.
#pragma once

#include <string>

#include "group/transport.h"

namespace hybridnet::group {

// Loads the library of an engine. Throws UnsupportedError that says what is missing.
MakeTransportFunction load_transport(const std::string& engine);

}  // namespace hybridnet::group
