// Checks, for every operator, the arrays that a call writes for its caller: the out= arrays and the inputs that are
// states.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// Throws ShapeError or DTypeError, with the operator, `out`, the spec of the result and the given spec, unless out[i]
// has the shape and dtype of result i.
void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const TensorSpec> results);
void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const NDArray> results);

// Throws ValueError if arrays that one call writes overlap, because a result would be lost. Skips null arrays.
void require_apart(const std::string& op, std::span<const NDArray> written);

// Infers specs with the specs of `out` as known outputs. Throws if they contradict the specs that follow from the
// inputs alone.
void infer_beside(const Op& op, const void* params, bool train, std::span<const NDArray> inputs,
                  std::span<const NDArray> out, std::span<TensorSpec> in_specs, std::span<TensorSpec> out_specs);

// Returns the inputs, with a copy of each one that overlaps a state which the operator writes, so that all are read as
// they were before the call. Empty: none overlaps.
std::vector<NDArray> apart_from_states(const Op& op, const void* params, std::span<const NDArray> inputs,
                                       size_t num_outputs);

}  // namespace hybridnet
