// Arrays in sparse storage: functions that make, convert and write them. Operators take them like dense arrays:
// invoke() computes on the parts by the form that the operator declares (Op::sparse; src/sparse has the rules);
// operators without a form run on dense copies, with one warning per operator.
//
// Parts may come from anywhere: they are checked when they are first used. Functions that read indices wait for them,
// so none may be called inside a task; values are computed asynchronously.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"

namespace hybridnet {

inline bool any_sparse(std::span<const NDArray> arrays) {
  for (const NDArray& a : arrays)
    if (a && a.is_sparse()) return true;
  return false;
}

// An array over parts, which are not copied. Throw ShapeError / DTypeError if sizes do not fit together; indices are
// not checked.
NDArray make_row_sparse(const Shape& shape, const NDArray& data, const NDArray& indices);
NDArray make_csr(const Shape& shape, const NDArray& data, const NDArray& indices, const NDArray& indptr);
NDArray sparse_zeros(StorageType type, const TensorSpec& spec, Device device = {});
// data[i] belongs to row rows[i], in any order; rows that repeat are summed.
NDArray row_sparse_sum(const Shape& shape, const NDArray& data, std::span<const int64_t> rows);

// Throws FormatError naming the part if indices are out of bounds or not ascending (csr: within a row).
void check_sparse(const NDArray& a);
// Returns the parts after checking them: indices are in bounds; row numbers of row_sparse are ascending and distinct.
const SparseStorage& checked_parts(const NDArray& a);

// A dense copy; `a` itself if it is dense.
NDArray to_dense(const NDArray& a);
// The same for computations: has the history and gradient of `a`, and shares its memory if needs_copy() is false.
NDArray dense_form(const NDArray& a);
// True if a dense form of `a` takes memory of its own; false if all rows are stored.
bool needs_copy(const NDArray& a);
// The values in another storage; `a` itself if it has that storage. csr needs a matrix.
NDArray cast_storage(const NDArray& a, StorageType type);
// The present values of `a`, without a copy: later writes to `a` do not change them. The history is that of `a`. A
// dense `a` is returned itself.
NDArray snapshot(const NDArray& a);
// A new array in the same storage with parts of its own.
NDArray copy_sparse(const NDArray& a);
// target = value (of any storage, shape and dtype of target).
void assign_sparse(const NDArray& target, const NDArray& value);
// The same without a copy, for a value whose parts have no other owner.
void move_into_sparse(const NDArray& target, const NDArray& value);

// The rows `rows` of a row_sparse array. All of them are stored in the result, as zeros if `a` does not store them.
NDArray retain_rows(const NDArray& a, const NDArray& rows);
// Rows `rows` of a dense or row_sparse array as a row_sparse array of the same shape.
NDArray take_rows_sparse(const NDArray& a, const NDArray& rows);
// Rows [row_begin, row_end) and columns [column_begin, column_end) of a csr matrix, as csr.
NDArray slice_csr(const NDArray& a, int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end);

}  // namespace hybridnet
