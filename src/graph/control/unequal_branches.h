// Branches whose outputs differ in size. They are found from the sizes of a call, unless a trace has found them already
// (_cond with dynamic=True); the graph is then cut at them (plan/segments.h).
#pragma once

#include <set>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Returns the _cond nodes, in the graph and in bodies, whose branches have outputs of different sizes. specs: the specs
// of all values of the graph. Nodes that are dynamic already, or whose sizes are unknown, are left out.
std::set<const Node*> unequal_branches(const std::vector<NodeEntry>& outputs, const SpecMap& specs, bool train);

// Returns the same graph over the same variables, with these branches marked as dynamic.
std::vector<NodeEntry> with_dynamic_branches(const std::vector<NodeEntry>& outputs,
                                             const std::set<const Node*>& branches);

}  // namespace hybridnet
