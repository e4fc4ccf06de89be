// Copies that plans, loops and branches make themselves, in addition to the work of operators. Profiles and
// test_utils.exec_counts show each of them as "copy".
#pragma once

#include <cstdint>
#include <string_view>

#include "device/memory.h"
#include "engine/profile.h"
#include "hybridnet/error.h"

namespace hybridnet {

[[gnu::noinline]] inline void copy_recorded(void* to, const void* from, int64_t bytes, std::string_view node,
                                            std::string_view block) {
  const profile::Scope scope("copy", "copy", intern_file(node), intern_file(block));
  device::copy_memory(to, from, bytes);
}

// `node`: the node that made the value, or the loop or branch that passes it on. Nothing is copied if the value has no
// bytes or is already there.
inline void copy_plainly(void* to, const void* from, int64_t bytes, std::string_view node,
                         std::string_view block = {}) {
  if (bytes <= 0 || to == from) return;
  if (profile::active()) [[unlikely]]
    return copy_recorded(to, from, bytes, node, block);
  device::copy_memory(to, from, bytes);
}

}  // namespace hybridnet
