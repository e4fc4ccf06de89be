// Checks that a file of parameters belongs to a graph. Done when a model is loaded, so that errors do not wait for the
// first run.
#pragma once

#include <map>
#include <string>

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::c_api {

// Throws FormatError if a parameter of the graph is not in the file, or an array of the file is no variable of the
// graph; ShapeError or DTypeError if an array contradicts the graph. Each names the file and the first difference.
// Attributes written by export() mark the variables that are parameters; the others may be inputs.
void require_parameters_of(const Symbol& symbol, const std::map<std::string, NDArray>& arrays, const std::string& file);

}  // namespace hybridnet::c_api
