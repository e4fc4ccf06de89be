// The group of this process.
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "group/group.h"

namespace hybridnet::group {

// Joined at the first call, as the environment says; without a launcher it is a group of one process.
// Throws what Group::join() throws.
std::shared_ptr<Group> current();
// Null if none was joined yet.
std::shared_ptr<Group> joined();
// Whether this process is in a group with others. Takes no lock.
bool has_others();
// Joins a group by these settings. Throws GroupError if this process is in a group of several processes already.
std::shared_ptr<Group> join(const Settings& settings);
// Leaves the group, whose other processes read the reason. The process may join another one then; until it does,
// current() throws.
void leave(const std::string& reason) noexcept;

}  // namespace hybridnet::group
