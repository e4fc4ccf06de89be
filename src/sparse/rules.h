// The functions of the table in operators.cc: per form (SparseForm), the storage of the result and the rule.
#pragma once

#include <algorithm>

#include "sparse/operators.h"

namespace hybridnet {

// One use of an operator with a sparse array among inputs or outputs.
struct SparseCall : SparseUse {
  std::span<const NDArray> inputs, out;
  StorageType storage(size_t i) const { return storages[i]; }
};

using ResultStorage = std::optional<StorageType>;  // nullopt: no form for these storages and parameters

inline ResultStorage as_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kDefault ? ResultStorage() : ResultStorage(use.storages[0]);
}
inline ResultStorage as_csr_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kCsr ? ResultStorage(StorageType::kCsr) : ResultStorage();
}
inline ResultStorage as_row_sparse_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kRowSparse ? ResultStorage(StorageType::kRowSparse) : ResultStorage();
}
inline bool all_stored_as(const SparseUse& use, StorageType type) {
  return std::all_of(use.storages.begin(), use.storages.end(), [type](StorageType s) { return s == type; });
}

// Runs the operator of the call on dense arrays, such as the stored values of sparse arrays.
NDArray apply(const SparseCall& call, std::span<const NDArray> inputs);
inline NDArray apply(const SparseCall& call, const NDArray& input) { return apply(call, {&input, 1}); }
// An array with the pattern of `a` and other values.
NDArray with_values(const NDArray& a, const NDArray& values);
// The values of a dense array at the positions that a sparse array stores. The dense shape may be broadcast.
NDArray values_at(const NDArray& sparse, const NDArray& dense);
// Concatenates arrays along axis 0.
NDArray concatenated(const std::vector<NDArray>& arrays);
ParamsPtr params_of(const Op& op, std::initializer_list<std::pair<std::string, AttrValue>> attrs);

bool some_need_gradient(std::span<const NDArray> inputs);
// Records the call with the operator's own gradient rule. on_sparse: the rule runs on sparse arrays.
void record_result(const SparseCall& call, const NDArray& result, bool on_sparse);

// elementwise.cc
ResultStorage as_input_if_zero_stays(const SparseUse& use);
NDArray on_values(const SparseCall& call);
NDArray copy_of(const SparseCall& call);
NDArray zeros_of(const SparseCall& call);
ResultStorage both_alike(const SparseUse& use);
NDArray union_of(const SparseCall& call);
ResultStorage sum_storage(const SparseUse& use);
NDArray sum_of(const SparseCall& call);
ResultStorage product_storage(const SparseUse& use);
NDArray product_of(const SparseCall& call);
ResultStorage quotient_storage(const SparseUse& use);
NDArray quotient_of(const SparseCall& call);
ResultStorage all_row_sparse(const SparseUse& use);
NDArray sum_of_row_sparse(const SparseCall& call);

// reductions.cc
ResultStorage norm_storage(const SparseUse& use);
NDArray norm_of(const SparseCall& call);
ResultStorage reduction_storage(const SparseUse& use);
NDArray sums_of(const SparseCall& call);
NDArray means_of(const SparseCall& call);
ResultStorage square_sum_storage(const SparseUse& use);
NDArray square_sum_of(const SparseCall& call);

// selection.cc
ResultStorage concat_storage(const SparseUse& use);
NDArray concat_csr(const SparseCall& call);
NDArray retained(const SparseCall& call);
NDArray slice_of(const SparseCall& call);
NDArray slice_axis_of(const SparseCall& call);
ResultStorage take_storage(const SparseUse& use);
NDArray take_csr(const SparseCall& call);

// products.cc
ResultStorage dot_storage(const SparseUse& use);
NDArray sparse_dot(const SparseCall& call);
ResultStorage embedding_storage(const SparseUse& use);
NDArray sparse_embedding(const SparseCall& call);

// updates.cc
ResultStorage update_storage(const SparseUse& use);
// Updates, in the weight and in the states, the rows that the gradient stores, by the operator SparseTrait::row_op.
NDArray update_rows(const SparseCall& call);

}  // namespace hybridnet
