// Runs kernels that need contiguous rows along any axis.
#pragma once

#include "kernels/memory/strided_copy.h"
#include "kernels/norm/softmax.h"
#include "ops/emit.h"

namespace hybridnet::ops {

template <typename T>
int64_t axis_as_rows_workspace(const kernels::RowShape& memory) {
  return memory.inner == 1 ? 0 : memory.size() * static_cast<int64_t>(sizeof(T));
}

// Calls rows(from, to), which must allow to == from; an inner axis is moved to the end before and back after the call.
template <typename T, typename F>
void axis_as_rows(const kernels::RowShape& memory, const T* x, T* y, void* workspace, F&& rows) {
  if (memory.inner == 1) return rows(x, y);
  // Transposes (outer, first, second) to (outer, second, first).
  const auto exchange = [&](const T* from, T* to, int64_t first, int64_t second) {
    kernels::StridedCopy copy;
    copy.add_axis(memory.outer, first * second, first * second);
    copy.add_axis(second, 1, first);
    copy.add_axis(first, second, 1);
    copy.run(from, to, sizeof(T));
  };
  T* space = static_cast<T*>(workspace);
  exchange(x, space, memory.length, memory.inner);
  rows(space, space);
  exchange(space, y, memory.inner, memory.length);
}

inline Value exchanged_with_last(const Value& v, int axis, int ndim) {
  if (axis == ndim - 1) return v;
  Tuple axes = Tuple::scalar();
  for (int i = 0; i < ndim; ++i) axes.push_back(i == axis ? ndim - 1 : i == ndim - 1 ? axis : i);
  return transpose(v, axes);
}

}  // namespace hybridnet::ops
