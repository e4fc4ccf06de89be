// Nodes that were made while the function of a loop or branch ran. When that has ended the loop or branch holds copies,
// and what the program has kept of the nodes themselves stands for nothing any more.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// The node belongs to a body that has ended. description: "the body of foreach (file:line)".
void close_with_body(Node& node, const std::string& description);
// That description; null: no such node.
const std::string* closed_body_of(const Node& node);

// Throws TraceError if the node reads a value of a body that has ended.
void check_reads_no_closed_body(const Node& node);
// The same for all that results depend on, and for the results themselves.
void check_leaks(const std::vector<NodeEntry>& results);

}  // namespace hybridnet
