// Names of outputs as MXNet lists them (Symbol.list_outputs), which saved programs and monitors rely on.
#pragma once

#include <string>

#include "hybridnet/graph.h"

namespace hybridnet {

// "fc_output", "bn_mean", "topk_output1"; of a variable its name.
std::string output_name_of(const NodeEntry& entry);

}  // namespace hybridnet
