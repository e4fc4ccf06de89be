// Operators on sparse arrays.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
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

// One use of an operator with a sparse array among inputs or outputs.
struct SparseCall : SparseUse {
  std::span<const NDArray> inputs, out;
  StorageType storage(size_t i) const { return storages[i]; }
};

// Returns the storage of the result; nullopt: the operator has no form for these storages and parameters and reads
// dense copies. Ignores shapes: if they do not fit, the result may be dense after all.
using SparseForm = std::optional<StorageType> (*)(const SparseUse& use);
// Called if there is a form. Returns the result, or a null handle if shapes or values do not fit.
using SparseRule = NDArray (*)(const SparseCall& call);

// Returns the form of an operator; nullopt for operators without a row in the table and for uses with dense arrays
// only.
std::optional<StorageType> sparse_form(const Op& op, const ParamsPtr& params, std::span<const StorageType> storages);

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

// The part of invoke() for calls with sparse arrays. Fills results[0 .. number of outputs).
void invoke_sparse(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, std::span<const NDArray> out,
                   std::vector<NDArray>* results);
// Converts an array to another storage ("default", "row_sparse", "csr") by the operator cast_storage, so gradients pass
// through.
NDArray convert_storage(const NDArray& a, std::string_view storage);
inline bool any_sparse(std::span<const NDArray> arrays) {
  for (const NDArray& a : arrays)
    if (a && a.is_sparse()) return true;
  return false;
}

// Returns the result of a gradient operator on dense inputs as a row_sparse array; null if the operator does not
// produce rows.
NDArray row_sparse_result(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs);

// Returns a row_sparse gradient with these rows. Indices may be out of [0, shape[0]) as mode allows. Waits for the
// indices.
NDArray row_sparse_gradient(const Shape& shape, const NDArray& values, const NDArray& indices, kernels::IndexMode mode);

}  // namespace hybridnet
