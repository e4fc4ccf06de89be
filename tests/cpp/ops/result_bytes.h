// The size of an operator's results, for tests that generate its arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet::testing {

// Returns the bytes of the largest result whose size is known before the operator runs; 0 for a wrong number of inputs.
// Errors of inference pass.
inline int64_t largest_result_bytes(const Op& op, const Params& params, std::vector<TensorSpec> in) {
  if (op.variadic ? in.empty() : op.num_inputs(params.data()) != static_cast<int>(in.size())) return 0;
  std::vector<TensorSpec> out(static_cast<size_t>(op.num_outputs(params.data())));
  InferContext context(op, in, out);
  op.infer(params.data(), context);
  int64_t bytes = 0;
  for (const TensorSpec& spec : out)
    if (spec.shape.known() && spec.dtype != DType::kUnknown) bytes = std::max(bytes, spec.bytes());
  return bytes;
}

// No machine can allocate results of this size or more, so tests may request them, like small results.
inline constexpr int64_t kImpossibleBytes = int64_t{1} << 46;

}  // namespace hybridnet::testing
