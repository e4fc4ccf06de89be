#include "kernels/reduce/reduce_stages.h"

namespace hybridnet::kernels {
namespace {

// Axes, merged with neighbors that are also kept or also reduced; sizes of 1 are dropped.
struct Groups {
  int n = 0;
  int64_t size[kMaxDims];
  bool reduced[kMaxDims];

  Groups(const Shape& shape, uint32_t axes) {
    for (int axis = 0; axis < shape.ndim(); ++axis) {
      if (shape[axis] != 1) add(shape[axis], (axes >> axis & 1u) != 0);
    }
  }
  void add(int64_t dim, bool is_reduced) {
    if (n > 0 && reduced[n - 1] == is_reduced) {
      size[n - 1] *= dim;
    } else {
      size[n] = dim;
      reduced[n++] = is_reduced;
    }
  }
  int last_reduced() const {
    int at = n - 1;
    while (at >= 0 && !reduced[at]) --at;
    return at;
  }
  // Neighbors of the removed group that are both kept are merged, so that the next stage has one inner size.
  void remove(int at) {
    Groups rest = *this;
    n = 0;
    for (int i = 0; i < rest.n; ++i)
      if (i != at) add(rest.size[i], rest.reduced[i]);
  }
  int64_t product(int first, int end) const {
    int64_t p = 1;
    for (int i = first; i < end; ++i) p *= size[i];
    return p;
  }
};

}  // namespace

ReduceStages::ReduceStages(const Shape& shape, uint32_t axes) {
  Groups groups(shape, axes);
  int64_t outputs = 1;
  for (int i = 0; i < groups.n; ++i) (groups.reduced[i] ? reduced_count : outputs) *= groups.size[i];
  if (outputs == 0) return;
  if (reduced_count == 0) {
    stages[count++] = {outputs, 0, 1};
    return;
  }
  int at = groups.last_reduced();
  if (at < 0) stages[count++] = {groups.product(0, groups.n), 1, 1};  // every element is a row of its own
  for (; at >= 0; at = groups.last_reduced()) {
    stages[count++] = {groups.product(0, at), groups.size[at], groups.product(at + 1, groups.n)};
    groups.remove(at);
  }
}

}  // namespace hybridnet::kernels
