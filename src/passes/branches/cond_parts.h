// A cond taken apart: its predicate stays, its branches come back with inputs of their own choice.
#pragma once

#include <array>

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet::passes {

// A branch that takes part in a new cond: input k of the body gets outside[k], a value of the graph around.
struct CondBranch {
  Ref<Subgraph> body;
  std::vector<NodeEntry> outside;
};

// The branch as a graph of its own.
Graph branch_graph(const Graph& graph, const Node& node, size_t body);

// Inputs of a body that get the same value become one: readers of the others read the first. outside: value of each.
// True if a reader has changed.
bool share_inputs(Graph& body, const std::vector<NodeEntry>& outside);

// Adds the cond with these branches; nothing reads it yet. p: numbers of outputs; which inputs go where is filled in.
NodePtr add_cond(Graph& graph, const Node& node, CondParams p, std::array<CondBranch, 2> branches);

// Pure in the sense of moves between a branch and what is around it: it may run there as well as here.
bool may_cross_branch_border(const Graph& graph, const Node& node);

}  // namespace hybridnet::passes
