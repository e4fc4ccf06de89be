// Bodies of loops and branches while Python functions are traced: which is open, what was made in it.
#pragma once

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::python {

// Called for every node that Python makes.
void note_made_node(const NodePtr& node);
// Throws TraceError if a body is open and `target` was there before it: each iteration would write, the trace only
// once.
void check_write_in_body(const NDArray& target);
// Forgets the nodes of closed bodies; called when a block's trace begins or ends.
void forget_closed_bodies();

}  // namespace hybridnet::python
