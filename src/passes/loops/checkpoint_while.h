// Loops with a condition whose gradient keeps at most 64 copies of their variables, however many iterations they may
// run.
#pragma once

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// How up to `most` iterations are cut: segments of `segment` iterations, and loops over them, one in the other; each
// of these runs `inner` times, the outermost `outer` times.
struct WhileSegments {
  int64_t segment = 0, inner = 1, outer = 1;
  int levels = 0;                                                                  // loops around the segments
  int64_t kept() const { return levels == 0 ? 0 : (levels - 1) * inner + outer; }  // copies of the variables
};
WhileSegments segments_of(int64_t most, const std::string& checkpoint);

// Makes loops over segments (checkpoint = kRecompute) of a _while_loop with checkpoint "sqrt", a number or a policy.
void lower_while_checkpoint(Graph& graph, Node& node);

}  // namespace hybridnet
