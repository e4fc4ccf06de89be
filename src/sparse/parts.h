// Functions that read parts of sparse arrays on the calling thread, and that make new parts.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/sparse.h"
#include "kernels/sparse/sparse_matrix.h"

namespace hybridnet {

// The values of an int64 array; waits for them.
std::span<const int64_t> read_int64(const NDArray& a);
// Integers in an array of any dtype; waits for them.
std::vector<int64_t> read_indices(const NDArray& a);
NDArray int64_array(std::span<const int64_t> values);

// Waits for indptr and indices.
kernels::CsrPattern read_pattern(const SparseStorage& csr);

inline int64_t row_width(const Shape& shape) { return shape.size(1, shape.ndim()); }
Shape with_rows(Shape shape, int64_t rows);

// Returns an output gradient as a row_sparse or dense array.
inline NDArray rows_or_dense(const NDArray& g) { return g.storage_type() == StorageType::kCsr ? dense_form(g) : g; }

// values[positions], rows of the leading axis; a row is zero if its position is negative.
NDArray gather_positions(const NDArray& values, std::vector<int64_t> positions);

}  // namespace hybridnet
