// Does a file of parameters belong to a graph? Asked when a model is loaded, so that the first run is not the first to
// tell.
#pragma once

#include <map>
#include <string>

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::c_api {

// Throws FormatError where a parameter of the graph is not in the file, or an array of the file is none of the graph's
// variables; ShapeError or DTypeError where an array contradicts the graph. Each names the file and the first that
// differs. Which variables are parameters is told by what export() notes at them; others may be inputs.
void require_parameters_of(const Symbol& symbol, const std::map<std::string, NDArray>& arrays, const std::string& file);

}  // namespace hybridnet::c_api
