// A meeting in a folder: one file for each key.
#pragma once

#include <memory>
#include <string>

#include "group/transport.h"

namespace hybridnet::group {

// Throws GroupError if the folder does not exist, belongs to another user, or others may use it.
std::unique_ptr<Meeting> open_folder_meeting(const std::string& folder);

}  // namespace hybridnet::group
