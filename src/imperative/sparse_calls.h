// The functions for sparse arrays that calls and backward need. The room src/sparse implements them, because its rules
// invoke operators themselves; hybridnet/sparse.h has the functions on arrays.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"

namespace hybridnet {

// The part of invoke() for calls with sparse arrays. Fills results[0 .. number of outputs).
void invoke_sparse(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   std::vector<NDArray>* results);

// Returns the result of a gradient operator on dense inputs as a row_sparse array; null if the operator does not
// produce rows.
NDArray row_sparse_result(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);

// Warns, once per operator, that it reads dense copies. `where`: the place of the use in parentheses, or empty.
void warn_of_dense_copies(const Op& op, const std::string& where, const std::string& because);

// During its lifetime the gradient rule of an operator runs on this thread; warnings say so.
class GradientRuleScope {
 public:
  explicit GradientRuleScope(const Op& op);
  ~GradientRuleScope();
  GradientRuleScope(const GradientRuleScope&) = delete;

 private:
  const Op* const before_;
};

}  // namespace hybridnet
