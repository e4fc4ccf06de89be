// Reading parts of sparse arrays on the calling thread, and making new ones.
#pragma once

#include <span>
#include <vector>

#include "hybridnet/sparse.h"
#include "kernels/sparse_matrix.h"

namespace hybridnet {

// The values of an int64 array; waits for them.
std::span<const int64_t> read_int64(const NDArray& a);
// Whole numbers of any dtype; waits for them.
std::vector<int64_t> read_indices(const NDArray& a);
NDArray int64_array(std::span<const int64_t> values);

// Waits for indptr and indices.
kernels::CsrPattern read_pattern(const SparseStorage& csr);

inline int64_t row_width(const Shape& shape) { return shape.size(1, shape.ndim()); }
Shape with_rows(Shape shape, int64_t rows);

// A gradient that arrives: row_sparse or dense.
inline NDArray rows_or_dense(const NDArray& g) { return g.storage_type() == StorageType::kCsr ? dense_form(g) : g; }

// values[positions], rows of the leading axis; zeros where a position is negative.
NDArray gather_positions(const NDArray& values, std::vector<int64_t> positions);

}  // namespace hybridnet
