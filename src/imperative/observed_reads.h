// Notes the arrays that operators read while a program is traced: results of operators on arrays become constants of
// the graph.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"

namespace hybridnet {

using ObservedReads = std::vector<NDArray>;

// The list to which invocations on this thread append their inputs; null: none.
extern thread_local ObservedReads* observed_reads __attribute__((tls_model("initial-exec")));

void observe_reads(std::span<const NDArray> inputs);

}  // namespace hybridnet
