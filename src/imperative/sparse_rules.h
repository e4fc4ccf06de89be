// Forms and rules of the table in sparse_operators.cc.
#pragma once

#include <algorithm>

#include "imperative/sparse_operators.h"

namespace hybridnet {

using Form = std::optional<StorageType>;

inline Form as_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kDefault ? Form() : Form(use.storages[0]);
}
inline Form as_csr_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kCsr ? Form(StorageType::kCsr) : Form();
}
inline Form as_row_sparse_input(const SparseUse& use) {
  return use.storages[0] == StorageType::kRowSparse ? Form(StorageType::kRowSparse) : Form();
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

// sparse_elementwise.cc
Form as_input_if_zero_stays(const SparseUse& use);
NDArray on_values(const SparseCall& call);
NDArray copy_of(const SparseCall& call);
NDArray zeros_of(const SparseCall& call);
Form both_alike(const SparseUse& use);
NDArray union_of(const SparseCall& call);
Form sum_form(const SparseUse& use);
NDArray sum_of(const SparseCall& call);
Form product_form(const SparseUse& use);
NDArray product_of(const SparseCall& call);
Form quotient_form(const SparseUse& use);
NDArray quotient_of(const SparseCall& call);
Form all_row_sparse(const SparseUse& use);
NDArray sum_of_row_sparse(const SparseCall& call);

// sparse_reductions.cc
Form norm_form(const SparseUse& use);
NDArray norm_of(const SparseCall& call);
Form reduction_form(const SparseUse& use);
NDArray reduction_of(const SparseCall& call);
NDArray square_sum_of(const SparseCall& call);

// sparse_selection.cc
Form concat_form(const SparseUse& use);
NDArray concat_csr(const SparseCall& call);
NDArray retained(const SparseCall& call);
NDArray slice_of(const SparseCall& call);
NDArray slice_axis_of(const SparseCall& call);
Form take_form(const SparseUse& use);
NDArray take_csr(const SparseCall& call);

// sparse_products.cc
Form dot_form(const SparseUse& use);
NDArray sparse_dot(const SparseCall& call);
Form embedding_form(const SparseUse& use);
NDArray sparse_embedding(const SparseCall& call);

// sparse_updates.cc
Form update_form(const SparseUse& use);
// Updates, in the weight and in the states, the rows that the gradient stores, by an operator that takes row indices.
NDArray update_rows(const SparseCall& call, const char* lazy_operator);

}  // namespace hybridnet
