// Arrays in sparse storage: how they are made, converted and written. Operators take them like dense arrays: invoke()
// looks their names and the storage of the inputs up in a table (src/imperative/sparse_operators.cc) and computes on
// the parts; operators without a row there run on dense copies, and a warning says so once per operator.
//
// Parts may come from anywhere: they are checked when they are first used. Functions that need to look at indices wait
// for them, so none may be called inside a task; values are computed asynchronously.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/ndarray.h"

namespace hybridnet {

// An array over parts, which are not copied. Throw ShapeError / DTypeError where sizes do not fit together; indices are
// not looked at.
NDArray make_row_sparse(const Shape& shape, const NDArray& data, const NDArray& indices);
NDArray make_csr(const Shape& shape, const NDArray& data, const NDArray& indices, const NDArray& indptr);
NDArray sparse_zeros(StorageType type, const TensorSpec& spec, Device device = {});
// data[i] belongs to row rows[i], in any order; where rows repeat, their sum.
NDArray row_sparse_sum(const Shape& shape, const NDArray& data, std::span<const int64_t> rows);

// Throws FormatError naming the part where indices are out of bounds or not ascending (csr: within a row).
void check_sparse(const NDArray& a);
// The parts, which are now in bounds; row numbers of row_sparse are ascending and distinct.
const SparseStorage& checked_parts(const NDArray& a);

// A dense copy; `a` itself if it is dense.
NDArray to_dense(const NDArray& a);
// The same for computing with: history and gradient are those of `a`, and memory is shared where needs_copy() is false.
NDArray dense_form(const NDArray& a);
// Does a dense form of `a` take memory of its own? Not where all rows are stored.
bool needs_copy(const NDArray& a);
// The values in another storage; `a` itself where it has that one. csr needs a matrix.
NDArray cast_storage(const NDArray& a, StorageType type);
// `a` as it is now, without a copy of its values: later writes to `a` do not reach it. History is that of `a`, which
// may be dense: then it is `a` itself.
NDArray snapshot(const NDArray& a);
// A new array in the same storage with parts of its own.
NDArray copy_sparse(const NDArray& a);
// target = value (of any storage, shape and dtype of target).
void assign_sparse(const NDArray& target, const NDArray& value);
// The same where nobody else holds the parts of value: they are not copied.
void move_into_sparse(const NDArray& target, const NDArray& value);

// Those rows of a row_sparse array that `rows` names; they are stored in the result, zeros where `a` stores none.
NDArray retain_rows(const NDArray& a, const NDArray& rows);
// Rows `rows` of a dense or row_sparse array as a row_sparse array of the same shape.
NDArray take_rows_sparse(const NDArray& a, const NDArray& rows);
// Rows [row_begin, row_end) and columns [column_begin, column_end) of a csr matrix, as csr.
NDArray slice_csr(const NDArray& a, int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end);

}  // namespace hybridnet
