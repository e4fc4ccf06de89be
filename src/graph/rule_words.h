// What the words of a rule's declaration stand for.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// The operators that a word names: one, or all that compute "mul" and its kind (graph/arithmetic.h). Throws ParamError.
std::vector<std::string> operators_of(const std::string& word);
// A stage of the pipeline by its name. Throws ValueError that lists them.
Stage stage_named(const std::string& name);

}  // namespace hybridnet
