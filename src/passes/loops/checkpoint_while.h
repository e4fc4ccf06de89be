// Loops with a condition whose gradient keeps at most 64 copies of their variables, for any number of iterations.
#pragma once

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// A cut of up to `most` iterations: segments of `segment` iterations, and nested loops over them; each of these runs
// `inner` times, the outermost `outer` times.
struct WhileSegments {
  int64_t segment = 0, inner = 1, outer = 1;
  int levels = 0;                                                                  // loops around the segments
  int64_t kept() const { return levels == 0 ? 0 : (levels - 1) * inner + outer; }  // copies of the variables
};
WhileSegments segments_of(int64_t most, const std::string& checkpoint);

// Turns a _while_loop with checkpoint "sqrt", a number or a policy into loops over segments (checkpoint = kRecompute).
void lower_while_checkpoint(Graph& graph, Node& node);

}  // namespace hybridnet
