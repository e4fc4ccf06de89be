// Branches whose outputs differ in size. That is told by the sizes of a call, unless a trace has seen it (_cond with
// dynamic=True); the graph is cut there then (plan/segments.h).
#pragma once

#include <set>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// The _cond nodes, in the graph and in bodies, whose branches give outputs of different sizes, given the specs of all
// values of the graph. Those that are dynamic already are left out, and those whose sizes are not known.
std::set<const Node*> unequal_branches(const std::vector<NodeEntry>& outputs, const SpecMap& specs, bool train);

// The same graph over the same variables, but only running tells the sizes of what these branches give.
std::vector<NodeEntry> with_dynamic_branches(const std::vector<NodeEntry>& outputs,
                                             const std::set<const Node*>& branches);

}  // namespace hybridnet
