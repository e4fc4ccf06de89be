// Reads and writes rows of a tensor by index. All indices must be valid (Indices::resolve).
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"

namespace hybridnet::kernels {

// The rows of a tensor viewed as (outer, rows, inner).
struct RowLayout {
  int64_t outer = 1, rows = 0, inner = 1;
};

// out (outer, count, inner): out[o, m, :] = data[o, ids[m], :]. It may be the memory of data if count == rows; rows
// that keep their place are then neither read nor written.
void gather_rows(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                 int64_t element_bytes);

// The same for the transpose of scatter_rows: rows whose id a later row has, too, are zeros.
void gather_last_rows(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                      int64_t element_bytes);

// data (outer, rows, inner): data[o, ids[m], :] = values[o, m, :]; if an id repeats, its last row remains.
void scatter_rows(const void* values, RowLayout layout, const int64_t* ids, int64_t count, void* data,
                  int64_t element_bytes);

// out (outer, rows, inner) = zeros, then out[o, ids[m], :] += grads[o, m, :]. Sums run in the order of m for any number
// of threads; half precision accumulates in float.
void scatter_add_rows(const TensorRef& grads, RowLayout layout, const int64_t* ids, int64_t count,
                      const TensorRef& out);

// Gathers elements along an axis. ids (outer, count, inner), data (outer, rows, inner): out[o, m, i] = data[o, ids[o,
// m, i], i].
void gather_along(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                  int64_t element_bytes);

// The transpose of gather_along: out = zeros, then out[o, ids[o, m, i], i] += grads[o, m, i], in the order of m.
void scatter_add_along(const TensorRef& grads, RowLayout layout, const int64_t* ids, int64_t count,
                       const TensorRef& out);

}  // namespace hybridnet::kernels
