// Operators on sparse arrays.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "kernels/indices.h"

namespace hybridnet {

// One use of an operator with a sparse array among inputs or outputs.
struct SparseCall {
  const Op& op;
  const ParamsPtr& params;
  std::span<const NDArray> inputs, out;
  StorageType storage(size_t i) const { return inputs[i].storage_type(); }
  AttrValue parameter(std::string_view name) const;  // None where the operator has no such parameter
  bool flag(std::string_view name) const;
};
// The result, or a null handle where the rule has no form for these storages and parameters.
using SparseRule = NDArray (*)(const SparseCall& call);

// What invoke() does with such calls. Results stand in results[0 .. number of outputs).
void invoke_sparse(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   std::vector<NDArray>* results);
inline bool any_sparse(std::span<const NDArray> arrays) {
  for (const NDArray& a : arrays)
    if (a && a.is_sparse()) return true;
  return false;
}

// The result of a gradient operator on dense inputs as a row_sparse array; null where it is not made of rows.
NDArray row_sparse_result(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);

// The same for rows and their indices, which may be out of [0, shape[0]) as mode says. Waits for the indices.
NDArray row_sparse_gradient(const Shape& shape, const NDArray& values, const NDArray& indices, kernels::IndexMode mode);

// Rules that record their own gradient (sparse_products.cc).
NDArray sparse_dot(const SparseCall& call);
NDArray sparse_embedding(const SparseCall& call);

}  // namespace hybridnet
