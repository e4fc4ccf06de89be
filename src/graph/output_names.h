// The names of outputs in MXNet (Symbol.list_outputs), on which saved programs and monitors rely.
#pragma once

#include <string>

#include "hybridnet/graph.h"

namespace hybridnet {

// Returns "fc_output", "bn_mean", "topk_output1"; for a variable its name.
std::string output_name_of(const NodeEntry& entry);

}  // namespace hybridnet
