// Meaning of the words in a rule's declaration.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// Returns the operators that a word names: one, or all operators of an arithmetic like "mul" (graph/arithmetic.h).
// Throws ParamError.
std::vector<std::string> operators_of(const std::string& word);
// Returns the stage of the pipeline with this name. Throws ValueError that lists the stages.
Stage stage_named(const std::string& name);

}  // namespace hybridnet
