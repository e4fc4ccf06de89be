// Matrices in compressed sparse row format (csr): the values of row r are data[indptr[r] ... indptr[r + 1] - 1], in the
// columns given by indices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hybridnet/kernel.h"
#include "kernels/sparse/sparse_rows.h"

namespace hybridnet::kernels {

struct CsrPattern {
  std::span<const int64_t> indptr, indices;
  // The same as indices, or empty. Products with vectors read one index per value, so half the bytes take nearly half
  // the time.
  std::span<const int32_t> narrow{};
  int64_t rows() const { return static_cast<int64_t>(indptr.size()) - 1; }
  int64_t stored() const { return static_cast<int64_t>(indices.size()); }
};

// ------------------------------------------------------------------------------------------ from and to dense memory
// Counts the nonzero values of a (rows, columns) matrix, row by row, and stores the sums in indptr (rows + 1).
void count_nonzeros(const void* dense, int64_t rows, int64_t columns, DType dtype, int64_t* indptr);
// Copies these values and their columns.
void take_nonzeros(const void* dense, int64_t rows, int64_t columns, DType dtype, const int64_t* indptr,
                   int64_t* indices, void* data);
// out (rows, columns) = zeros with the stored values; values with equal positions are added.
void csr_to_dense(const CsrPattern& pattern, const void* data, int64_t columns, DType dtype, void* out);

// --------------------------------------------------------------------------------------------------------- products
// out (rows, width) = csr . rhs (columns, width).
void csr_dot(const CsrPattern& pattern, const void* data, DType dtype, const void* rhs, int64_t width, void* out);
// Row g of out = sum over the stored values of column groups.ids[g] of value * rhs[row of the value]: the rows of
// transposed(csr) . rhs that are not zeros. groups: the stored values by column; row_of: the row of each.
void csr_transposed_dot(const RowGroups& groups, std::span<const int64_t> row_of, const void* data, DType dtype,
                        const void* rhs, int64_t width, void* out);
// transposed(csr) . rhs with all of its rows, out (columns, width): faster if scatters() is true.
bool scatters(DType dtype, int64_t columns, int64_t stored);
void csr_transposed_dot_dense(const CsrPattern& pattern, const void* data, DType dtype, const void* rhs, int64_t width,
                              int64_t columns, void* out);
// The columns of the stored values, ascending, without duplicates.
std::vector<int64_t> used_columns(const CsrPattern& pattern, int64_t columns);
// The row of each stored value.
std::vector<int64_t> rows_of_values(std::span<const int64_t> indptr);
// out (lhs_rows, columns) = lhs (lhs_rows, rows) . csr
void dense_dot_csr(const void* lhs, int64_t lhs_rows, const CsrPattern& pattern, const void* data, int64_t columns,
                   DType dtype, void* out);

// ------------------------------------------------------------------------------------------------- rows and columns
// Sums of the stored values of each row (out: rows), and of each column (out: columns). Halves are summed in float.
void csr_row_sums(const CsrPattern& pattern, const void* data, DType dtype, void* out);
void csr_column_sums(const CsrPattern& pattern, const void* data, DType dtype, int64_t columns, void* out);

bool columns_ascending(const CsrPattern& pattern);

// The combined pattern of two matrices of equal shape, each row combined by align().
struct CsrAlignment {
  std::vector<int64_t> indptr;
  Alignment columns;
};
CsrAlignment align_csr(const CsrPattern& a, const CsrPattern& b, bool common_only);

// The stored values of rows [row_begin, row_end) with columns in [column_begin, column_end): their positions, columns
// (from column_begin) and the new indptr.
struct CsrSelection {
  std::vector<int64_t> indptr, indices, positions;
};
CsrSelection select_csr(const CsrPattern& pattern, int64_t row_begin, int64_t row_end, int64_t column_begin,
                        int64_t column_end);

// out[i] = dense[row of value i * row_stride + its column * column_stride]; strides may be 0 (broadcast).
void gather_at_values(const CsrPattern& pattern, const void* dense, int64_t row_stride, int64_t column_stride,
                      int64_t element_bytes, void* out);

}  // namespace hybridnet::kernels
