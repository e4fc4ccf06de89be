// Gathers, scatters and indices in memory of a device: the forms of gather.h and indices.h that run on
// device::current(), which must be set. ids are memory of the device.
// Threads: any. Launches are in the order of the stream; only has_outside() waits for it.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include <cstdint>

#include "hybridnet/kernel.h"
#include "kernels/index/gather.h"

namespace hybridnet::kernels::on_device {

void gather_rows(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                 int64_t element_bytes);
void gather_along(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                  int64_t element_bytes);
void scatter_rows(const void* values, RowLayout layout, const int64_t* ids, int64_t count, void* data,
                  int64_t element_bytes);
// gather_rows of one outer; rows whose id appears again become 0.
void gather_last_rows(const void* data, RowLayout layout, const int64_t* ids, int64_t count, void* out,
                      int64_t element_bytes);
// `out` is zero before. Ids outside of the rows are skipped.
void scatter_add_rows(const TensorRef& grads, RowLayout layout, const int64_t* ids, int64_t count,
                      const TensorRef& out);
void scatter_add_along(const TensorRef& grads, RowLayout layout, const int64_t* ids, int64_t count,
                       const TensorRef& out);

void read_indices(const TensorRef& tensor, int64_t* to);
// ids = ids * size + next.
void merge_indices(int64_t* ids, const int64_t* next, int64_t n, int64_t size);
void clip_indices(int64_t* ids, int64_t n, int64_t low, int64_t high);
void wrap_indices(int64_t* ids, int64_t n, int64_t size);
// Adds size to negative indices. False if an index is outside of [-size, size): it stays.
bool count_from_end(int64_t* ids, int64_t n, int64_t size);
// True if a number is outside of [low, high].
bool has_outside(const int64_t* ids, int64_t n, int64_t low, int64_t high);

}  // namespace hybridnet::kernels::on_device
