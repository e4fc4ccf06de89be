// Marks for nodes that were made while the function of a loop or branch ran. After its end the loop or branch holds
// copies, and references of the program to the original nodes are invalid.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Marks the node as part of a body that has ended. description: "the body of foreach (file:line)".
void close_with_body(Node& node, const std::string& description);
// Returns that description; null if the node has no such mark.
const std::string* closed_body_of(const Node& node);

// Throws TraceError if the node reads a value of a body that has ended.
void check_reads_no_closed_body(const Node& node);
// Throws the same error if a result, or a node that it depends on, belongs to or reads from a body that has ended.
void check_leaks(const std::vector<NodeEntry>& results);

}  // namespace hybridnet
