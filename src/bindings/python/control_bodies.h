// Bodies of loops and branches while Python functions are traced: which is open, what was made in it.
#pragma once

#include <string>

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::python {

// Called for every node that Python makes. Outside of traces, throws TraceError if it reads a value of a closed body.
void note_made_node(const NodePtr& node);
// Throws TraceError if a body is open, or a block is traced, and `target` was there before it: each run would write,
// the trace only once.
void check_write_in_body(const NDArray& target);
// The innermost open body if `node` was not made in it, as "the body of foreach (file:line)"; else null.
const std::string* body_around(const Node& node);
// Was the node made in a body, open or closed?
bool belongs_to_body(const Node& node);

}  // namespace hybridnet::python
