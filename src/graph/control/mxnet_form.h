// Loops and branches as symbol JSON of MXNet describes them: by lists of indices, so that inputs of nodes and bodies
// may stand in any order (docs/formats.md). What MXNet does not have is left out of files when it has its default.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/control/control_flow.h"

namespace hybridnet {

// The attributes of control-flow nodes in files; null for other operators.
const SchemaBase* file_schema(const Op& op);

// A node from a file. attributes: as file_schema() parsed them. bodies: their inputs in the order in which the outputs
// reach them, the others behind. Throws FormatError unless the attributes fit inputs and bodies (files may say
// anything).
NodePtr node_from_file(const Op& op, std::string name, const Params& attributes, std::vector<NodeEntry> inputs,
                       std::vector<Ref<Subgraph>> bodies);

struct FileForm {
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<std::vector<NodePtr>> unread;  // per body: inputs that are written although no output reaches them
};
FileForm file_form(const Node& node);

}  // namespace hybridnet
