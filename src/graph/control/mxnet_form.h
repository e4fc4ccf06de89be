// Loops and branches in the form of MXNet's symbol JSON: lists of indices, so that inputs of nodes and bodies may be in
// any order (docs/formats.md). Parameters that MXNet does not have are left out of files if they have their default.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/control/control_flow.h"

namespace hybridnet {

// Returns the schema of a control-flow node's attributes in files; null for other operators.
const SchemaBase* file_schema(const Op& op);

// Makes a node from its file form. attributes: parsed by file_schema(). bodies: their inputs are in the order in which
// the outputs reach them, unreached inputs last. Throws FormatError unless the attributes fit inputs and bodies (files
// may hold anything).
NodePtr node_from_file(const Op& op, std::string name, const Params& attributes, std::vector<NodeEntry> inputs,
                       std::vector<Ref<Subgraph>> bodies);

struct FileForm {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::vector<NodePtr>> unread;  // per body: inputs that are written although no output depends on them
};
FileForm file_form(const Node& node);

}  // namespace hybridnet
