// The ops that move a value between plain and channels-last memory. Only the layout pass makes them.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::passes {

// Same logical value, other physical order: `to` is the format of the output.
const Op& change_format_op(Format to);

}  // namespace hybridnet::passes
