// Operators on sparse arrays: the storage of their results, and conversions that are recorded.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "imperative/sparse_calls.h"
#include "kernels/index/indices.h"

namespace hybridnet {

// The properties of a use of an operator that are known before it runs.
struct SparseUse {
  const Op& op;
  const ParamsPtr& params;
  std::span<const StorageType> storages;             // one per input
  AttrValue parameter(std::string_view name) const;  // None if the operator has no such parameter
  bool flag(std::string_view name) const;
};

// Returns the storage of the result; nullopt: the operator has no form for these storages and parameters and reads
// dense copies. Ignores shapes: if they do not fit, the result may be dense after all. Uses with dense arrays only have
// no form.
std::optional<StorageType> sparse_form(const Op& op, const ParamsPtr& params, std::span<const StorageType> storages);

// Converts an array to another storage ("default", "row_sparse", "csr") by the operator cast_storage, so gradients pass
// through.
NDArray convert_storage(const NDArray& a, std::string_view storage);

// Returns a row_sparse gradient with these rows. Indices may be out of [0, shape[0]) as mode allows. Waits for the
// indices.
NDArray row_sparse_gradient(const Shape& shape, const NDArray& values, const NDArray& indices, kernels::IndexMode mode);

}  // namespace hybridnet
