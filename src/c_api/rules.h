// Rules that other libraries bring.
#pragma once

#include <set>
#include <string>

#include "hybridnet/c_api.h"
#include "hybridnet/pass.h"

namespace hybridnet::c_api {

// The row of the pipeline that a declaration in C describes. more_ops: operators that come with the rule and are not
// known yet. Throws ParamError or ValueError naming the field that is wrong.
Rewrite read_rule(const HnRule* given, const std::set<std::string>& more_ops = {});

}  // namespace hybridnet::c_api
