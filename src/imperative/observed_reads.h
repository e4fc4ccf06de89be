// Which arrays operators read while a program is traced: results of operators on arrays are constants of the graph.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"

namespace hybridnet {

using ObservedReads = std::vector<NDArray>;

// Where invocations of this thread note their inputs; null: nowhere.
extern thread_local ObservedReads* observed_reads __attribute__((tls_model("initial-exec")));

void observe_reads(std::span<const NDArray> inputs);

}  // namespace hybridnet
