// Element-wise operators on sparse arrays: on the values of one pattern, of the patterns of both operands, or of the
// pattern of a sparse factor.
#include <cstring>

#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "sparse/parts.h"
#include "sparse/rules.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

}  // namespace

NDArray on_values(const SparseCall& call) {
  return with_values(call.inputs[0], apply(call, checked_parts(call.inputs[0]).data));
}

namespace {

bool is_zero(const NDArray& one_element) {
  one_element.wait_to_read();
  return dispatch_dtype(one_element.dtype(), [&](auto zero) {
    return static_cast<double>(*static_cast<const decltype(zero)*>(one_element.data())) == 0.0;
  });
}

}  // namespace

// The form of operators that map zero to zero with these parameters: x * 2, x + 0, x > 1, but not x + 1.
ResultStorage as_input_if_zero_stays(const SparseUse& use) {
  if (use.storages[0] == StorageType::kDefault) return {};
  const DType dtype = use.op.dtypes.has(DType::kFloat32) ? DType::kFloat32 : DType::kInt32;
  if (!use.op.dtypes.has(dtype)) return {};
  const NDArray zero = NDArray::empty(Shape{1}, dtype);
  std::memset(zero.data(), 0, static_cast<size_t>(zero.bytes()));
  const AutogradScope paused({.recording = false, .training = autograd_state().training});
  return is_zero(invoke_one(use.op, use.params, {&zero, 1})) ? ResultStorage(use.storages[0]) : ResultStorage();
}

NDArray copy_of(const SparseCall& call) { return copy_sparse(call.inputs[0]); }

NDArray zeros_of(const SparseCall& call) {
  const NDArray& a = call.inputs[0];
  return sparse_zeros(a.storage_type(), a.spec(), a.device());
}

namespace {

// Runs the operator on both inputs with one pattern: the union of their patterns, or (common) the intersection.
NDArray on_aligned_values(const SparseCall& call, bool common) {
  const NDArray &a = call.inputs[0], &b = call.inputs[1];
  const SparseStorage &left = checked_parts(a), &right = checked_parts(b);
  kernels::CsrAlignment aligned;
  NDArray indptr;
  if (left.type == StorageType::kCsr) {
    const kernels::CsrPattern patterns[] = {read_pattern(left), read_pattern(right)};
    if (!kernels::columns_ascending(patterns[0]) || !kernels::columns_ascending(patterns[1])) return {};
    aligned = kernels::align_csr(patterns[0], patterns[1], common);
    indptr = int64_array(aligned.indptr);
  } else {
    kernels::align(read_int64(left.indices), read_int64(right.indices), common, &aligned.columns);
  }
  const NDArray values[] = {gather_positions(left.data, std::move(aligned.columns.a)),
                            gather_positions(right.data, std::move(aligned.columns.b))};
  const NDArray data = apply(call, values);
  Ref<SparseStorage> made = make_ref<SparseStorage>(left.type, data, int64_array(aligned.columns.ids), indptr);
  made->checked = true;
  return NDArray::sparse({a.shape(), data.dtype()}, Ref<Object>(made.get()), a.device());
}

bool same_shape(const SparseCall& call) { return call.inputs[0].shape() == call.inputs[1].shape(); }

// dense + row_sparse: copies the dense array and adds the stored rows.
NDArray add_rows_to_dense(const SparseCall& call) {
  const size_t sparse = call.storage(0) == StorageType::kRowSparse ? 0 : 1;
  const NDArray &rows = call.inputs[sparse], &dense = call.inputs[1 - sparse];
  if (dense.dtype() != rows.dtype()) return {};
  const SparseStorage& parts = checked_parts(rows);
  const NDArray out = invoke_one(kCopy.op(), kCopy.op().default_params, {&dense, 1});
  const NDArray reads[] = {parts.data, parts.indices}, writes[] = {out};
  note_overwrite(out);
  run_task("add_rows", reads, writes, parts.data.bytes() / 2 + 1,
           [data = parts.data, indices = parts.indices, out](TaskContext&) {
             const auto* ids = static_cast<const int64_t*>(indices.data());
             const int64_t width = row_width(out.shape());
             dispatch_dtype(out.dtype(), [&](auto zero) {
               using T = decltype(zero);
               using A = accumulator_t<T>;
               const T* from = static_cast<const T*>(data.data());
               T* to = static_cast<T*>(out.data());
               for (int64_t r = 0; r < indices.size(); ++r) {
                 for (int64_t i = 0; i < width; ++i) {
                   T& target = to[ids[r] * width + i];
                   target = static_cast<T>(static_cast<A>(target) + static_cast<A>(from[r * width + i]));
                 }
               }
             });
           });
  return out;
}

}  // namespace

ResultStorage both_alike(const SparseUse& use) {
  return use.storages[0] == use.storages[1] ? as_input(use) : ResultStorage();
}
NDArray union_of(const SparseCall& call) { return same_shape(call) ? on_aligned_values(call, false) : NDArray(); }

ResultStorage sum_storage(const SparseUse& use) {
  const StorageType a = use.storages[0], b = use.storages[1];
  if (a == b) return as_input(use);
  const bool rows = a == StorageType::kRowSparse || b == StorageType::kRowSparse;
  const bool dense = a == StorageType::kDefault || b == StorageType::kDefault;
  return rows && dense ? ResultStorage(StorageType::kDefault) : ResultStorage();
}

NDArray sum_of(const SparseCall& call) {
  if (!same_shape(call)) return {};
  return call.storage(0) == call.storage(1) ? on_aligned_values(call, false) : add_rows_to_dense(call);
}

// The values of a dense array at the positions that a sparse array stores. The dense shape may be broadcast.
NDArray values_at(const NDArray& sparse, const NDArray& dense) {
  const SparseStorage& parts = checked_parts(sparse);
  if (parts.type == StorageType::kRowSparse) {
    const std::span<const int64_t> rows = read_int64(parts.indices);
    return gather_positions(dense, {rows.begin(), rows.end()});
  }
  const Shape& shape = dense.shape();
  const int64_t columns = shape[shape.ndim() - 1], rows = shape.ndim() == 2 ? shape[0] : 1;
  const int64_t row_stride = rows == 1 ? 0 : columns, column_stride = columns == 1 ? 0 : 1;
  const kernels::CsrPattern pattern = read_pattern(parts);
  const NDArray out = NDArray::deferred({parts.data.shape(), dense.dtype()});
  const NDArray reads[] = {dense}, writes[] = {out};
  run_task(
      "values_at", reads, writes, pattern.stored() + 1,
      [indptr = parts.indptr, indices = parts.indices, pattern, dense, out, row_stride, column_stride](TaskContext&) {
        if (out.size() > 0)
          kernels::gather_at_values(pattern, dense.data(), row_stride, column_stride, dtype_size(out.dtype()),
                                    out.data());
      });
  return out;
}

namespace {

// Operators that broadcast, which are not format_agnostic, also take vectors and single numbers beside a matrix.
bool fits_values_at(const Op& op, const NDArray& sparse, const NDArray& dense) {
  if (sparse.shape() == dense.shape()) return true;
  const Shape &s = sparse.shape(), &d = dense.shape();
  if (op.format_agnostic || d.ndim() < 1 || d.ndim() > s.ndim()) return false;
  if (dense.size() == 1) return true;
  if (sparse.storage_type() != StorageType::kCsr) return false;
  const int64_t columns = d[d.ndim() - 1], rows = d.ndim() == 2 ? d[0] : 1;
  return (columns == s[1] || columns == 1) && (rows == s[0] || rows == 1);
}

// The product is stored at the positions of the sparse factor, which may be either input.
NDArray product_with_dense(const SparseCall& call, size_t sparse) {
  const NDArray& dense = call.inputs[1 - sparse];
  if (!fits_values_at(call.op, call.inputs[sparse], dense)) return {};
  NDArray values[2];
  values[sparse] = checked_parts(call.inputs[sparse]).data;
  const bool one_number = dense.size() == 1 && !same_shape(call);
  values[1 - sparse] = one_number ? dense.reshaped(Shape{1}) : values_at(call.inputs[sparse], dense);
  return with_values(call.inputs[sparse], apply(call, values));
}

}  // namespace

ResultStorage product_storage(const SparseUse& use) {
  const StorageType a = use.storages[0], b = use.storages[1];
  if (a == b) return as_input(use);
  if (a != StorageType::kDefault && b != StorageType::kDefault) return {};
  return a == StorageType::kDefault ? b : a;
}

NDArray product_of(const SparseCall& call) {
  if (call.inputs[0].is_sparse() && call.inputs[1].is_sparse())
    return same_shape(call) ? on_aligned_values(call, true) : NDArray();
  return product_with_dense(call, call.inputs[0].is_sparse() ? 0 : 1);
}

// 0 / x is 0: the quotient by a dense array has the pattern of the numerator.
ResultStorage quotient_storage(const SparseUse& use) {
  return use.storages[1] == StorageType::kDefault ? as_csr_input(use) : ResultStorage();
}

NDArray quotient_of(const SparseCall& call) { return product_with_dense(call, 0); }

ResultStorage all_row_sparse(const SparseUse& use) {
  return all_stored_as(use, StorageType::kRowSparse) ? as_input(use) : ResultStorage();
}

NDArray sum_of_row_sparse(const SparseCall& call) {
  std::vector<int64_t> rows;
  std::vector<NDArray> data;
  for (const NDArray& a : call.inputs) {
    if (!(a.spec() == call.inputs[0].spec())) return {};
    const SparseStorage& parts = checked_parts(a);
    const std::span<const int64_t> ids = read_int64(parts.indices);
    rows.insert(rows.end(), ids.begin(), ids.end());
    if (!ids.empty()) data.push_back(parts.data);
  }
  const NDArray& first = call.inputs[0];
  if (data.empty()) return sparse_zeros(StorageType::kRowSparse, first.spec(), first.device());
  return row_sparse_sum(first.shape(), data.size() == 1 ? data[0] : concatenated(data), rows);
}

}  // namespace hybridnet
