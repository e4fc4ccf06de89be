// Open bodies of loops and branches while Python functions are traced, and the nodes made in them.
#pragma once

#include <string>

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::python {

// Called for every node that Python makes. Outside of traces, throws TraceError if it reads a value of a closed body.
void note_made_node(const NodePtr& node);
// Throws TraceError if a body is open, or a block is traced, and `target` is older: each run should write to it, but
// the trace would write only once.
void check_write_in_body(const NDArray& target);
// Returns the description of the innermost open body, "the body of foreach (file:line)", if `node` was not made in it;
// else null.
const std::string* body_around(const Node& node);
// Returns the number of the innermost open body, 0 if there is none.
int innermost_body();
// True for the numbers of open bodies, and for 0.
bool is_open_body(int id);
// True if the node was made in a body, open or closed.
bool belongs_to_body(const Node& node);

}  // namespace hybridnet::python
