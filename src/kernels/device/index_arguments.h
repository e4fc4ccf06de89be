// The parameters of the kernels of index.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct IndexArguments {
  const void* in;  // numbers of any dtype
  int64_t* ids;
  int64_t n;
  int64_t low, high;  // clip: the bounds
  int64_t size;       // wrap, raise: the length of the axis
  int32_t* outside;   // set to 1 if an index is out of bounds
};

// Rows of (outer, rows, inner) by `count` ids; along: an id for each (outer, count, inner).
struct GatherArguments {
  const void* in;
  void* out;
  const int64_t* ids;
  int64_t* next;  // the next place with the same id, or -1
  uint8_t* head;  // 1 for the first place of each id
  int64_t outer, rows, inner, count;
  const int64_t* order;  // for link_sorted_places
};

}  // namespace hybridnet::device
