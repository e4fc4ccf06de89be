// Sums of compressed gradients over the processes of the group (group/compression.h).
// Threads: any thread, as for imperative/group_arrays.h.
// Throws:  DTypeError, ShapeError, UnsupportedError, ParamError. What goes wrong between processes is a GroupError,
//          kept on the arrays until they are waited for.
#pragma once

#include <span>
#include <string>

#include "group/compression.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// out[i] = the sum over all processes, in the order of ranks, of what the codes of `gradients[i] + residuals[i]` stand
// for; residuals[i] = what they leave out. One message for all arrays, which are dense float32 arrays on the CPU.
// out[i] may be gradients[i].
void sum_compressed_over_group(const group::Codec& codec, std::span<const NDArray> gradients,
                               std::span<const NDArray> residuals, std::span<const NDArray> out,
                               const std::string& label, int priority);
// The same within this process: out = the coded values.
void code_values(const group::Codec& codec, const NDArray& gradient, const NDArray& residual, const NDArray& out);

}  // namespace hybridnet
