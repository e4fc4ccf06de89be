// Lazy updates of optimizers, which update only the rows that a gradient stores.
#include "imperative/invoke.h"
#include "sparse/parts.h"
#include "sparse/rules.h"

namespace hybridnet {
namespace {

// Returns a table that stores all rows as the dense array that holds them; adds the missing rows to the table first.
NDArray whole_table(const NDArray& a) {
  if (!a.is_sparse()) return a;
  if (checked_parts(a).indices.size() != a.shape()[0]) {
    const NDArray dense = to_dense(a);
    std::vector<int64_t> rows(static_cast<size_t>(a.shape()[0]));
    for (size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<int64_t>(r);
    SparseStorage& parts = sparse_storage(a);
    parts.data = dense;
    parts.indices = int64_array(rows);
  }
  return sparse_storage(a).data;
}

}  // namespace

// The form of updates that change only the rows that the gradient stores, in the weight and in the states.
ResultStorage update_storage(const SparseUse& use) {
  if (use.storages.size() < 2 || use.storages[1] != StorageType::kRowSparse || use.storages[0] == StorageType::kCsr)
    return {};
  if (const AttrValue lazy = use.parameter("lazy_update"); !lazy.is_none() && !use.flag("lazy_update")) return {};
  return use.storages[0];
}

NDArray update_rows(const SparseCall& call) {
  if (call.out.size() != 1) return {};
  const NDArray &weight = call.inputs[0], &grad = call.inputs[1];
  if (!(call.out[0] == weight) || !(grad.spec() == weight.spec())) return {};
  const SparseStorage& rows = checked_parts(grad);
  if (rows.indices.size() == 0) return weight;
  std::vector<NDArray> inputs{whole_table(weight), rows.data};
  for (const NDArray& state : call.inputs.subspan(2)) {
    if (state.storage_type() == StorageType::kCsr) return {};
    inputs.push_back(whole_table(state));
  }
  inputs.push_back(rows.indices);
  const Op& op = op_registry().at(call.op.sparse.row_op);
  const NDArray table = inputs[0];
  invoke(op, call.params, inputs, {&table, 1});
  return weight;
}

}  // namespace hybridnet
