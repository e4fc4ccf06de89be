// Nodes that may be linked to algorithms with larger rounding errors (LinkContext::may_round_more).
#pragma once

#include "hybridnet/graph.h"

namespace hybridnet {

void allow_more_rounding(Node& node);
bool may_round_more(const Node& node);

}  // namespace hybridnet
