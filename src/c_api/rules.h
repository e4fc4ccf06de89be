// Rewrite rules of other libraries.
#pragma once

#include <set>
#include <string>

#include "hybridnet/c_api.h"
#include "hybridnet/pass.h"

namespace hybridnet::c_api {

// Returns the row of the pipeline for a declaration in C. more_ops: operators of the same library that are not
// registered yet. Throws ParamError or ValueError naming the wrong field.
Rewrite read_rule(const HnRule* given, const std::set<std::string>& more_ops = {});

}  // namespace hybridnet::c_api
