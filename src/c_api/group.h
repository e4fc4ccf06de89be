// The group of this process, for C functions.
#pragma once

#include <memory>

#include "group/group.h"

namespace hybridnet::c_api {

// Joins the group of the environment at the first call. When a member of a group ends normally, the others read that
// the program ended. Throws GroupError.
std::shared_ptr<group::Group> current_group();

}  // namespace hybridnet::c_api
