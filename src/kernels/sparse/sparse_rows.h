// Row-sparse tensors, which store only some rows: rows[i] is row ids[i].
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// Row numbers in ascending order, without duplicates, each with the positions where it occurs.
struct RowGroups {
  std::vector<int64_t> ids;     // ascending
  std::vector<int64_t> starts;  // group g contains the positions order[starts[g]] ... order[starts[g + 1] - 1]
  std::vector<int64_t> order;   // ascending within a group
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};
RowGroups group_rows(std::span<const int64_t> ids);

bool strictly_ascending(std::span<const int64_t> ids);

// out row g = sum of the rows at the positions of group g, in their order. Halves are summed in float.
void sum_groups(const RowGroups& groups, const void* rows, int64_t width, DType dtype, void* out);

// The numbers of the rows of a (rows, width) tensor that are not all zeros.
std::vector<int64_t> nonzero_rows(const void* data, int64_t rows, int64_t width, DType dtype);

// Two ascending lists merged: `ids` are the ids of both (or only common ones); a[i] and b[i] are the positions of
// ids[i] in the lists, or -1 if it is missing.
struct Alignment {
  std::vector<int64_t> ids, a, b;
};
void align(std::span<const int64_t> a, std::span<const int64_t> b, bool common_only, Alignment* out);

// out row i = row positions[i] of rows; zeros if the position is negative. Elements of any type.
void gather_or_zero(const void* rows, int64_t row_bytes, std::span<const int64_t> positions, void* out);

// Returns the position of each of `wanted` in the ascending list `ids`, or -1 if it is missing.
std::vector<int64_t> find_rows(std::span<const int64_t> ids, std::span<const int64_t> wanted);

}  // namespace hybridnet::kernels
