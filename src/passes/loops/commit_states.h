// Running statistics and other states that operators update: after a run they hold the values that the graph computed.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// Makes a write-back of every new state. Inside bodies of loops and branches a state becomes a carried value, which the
// node returns at its end: statistics advance once per iteration that ran, and only when the whole run succeeded.
void commit_states(Graph& graph);

// True if running the node, or a body of it, in this mode makes new values of states that it reads.
bool updates_states(const Node& node, bool train);

}  // namespace hybridnet
