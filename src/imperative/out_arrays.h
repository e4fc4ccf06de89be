// What a call writes for its caller: the arrays of out=, and inputs that are states. Checked here for every operator.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"
#include "hybridnet/op.h"

namespace hybridnet {

// out[i] has the shape and dtype of result i, else: ShapeError or DTypeError that names the operator, `out`, what the
// operator gives and what came.
void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const TensorSpec> results);
void require_specs(const std::string& op, std::span<const NDArray> out, std::span<const NDArray> results);

// Results of one call lie apart, else one of them would be lost: ValueError. null arrays: passed over.
void require_apart(const std::string& op, std::span<const NDArray> written);

// As the operator infers, beside these arrays. Where they contradict what it gives for the inputs alone, that is said.
void infer_beside(const Op& op, const void* params, bool train, std::span<const NDArray> inputs,
                  std::span<const NDArray> out, std::span<TensorSpec> in_specs, std::span<TensorSpec> out_specs);

// What the operator reads beside the states that it writes: inputs that overlap these are copied, so that all are read
// as they were before the call. Empty: none does.
std::vector<NDArray> apart_from_states(const Op& op, const void* params, std::span<const NDArray> inputs,
                                       size_t num_outputs);

}  // namespace hybridnet
