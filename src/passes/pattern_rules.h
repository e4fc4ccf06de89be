// Rows of the pipeline that are patterns (graph/pattern_notation.h) instead of functions.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// Gives rows with patterns the local rule that applies the first pattern that matches, and the operators that the rule
// visits. The rule leaves a match if the replacement would have another shape or dtype, or if the node keeps an output
// of the graph apart from an input. Throws ParamError, which names the row, for a pattern that is wrong.
void compile_patterns(std::vector<Rewrite>& rows);

}  // namespace hybridnet::passes
