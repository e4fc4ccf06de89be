// Memory that code outside of the library can write, because it was exported: by DLPack, as a pointer, as a buffer.
//
// From then on it counts as foreign memory, as if it had come from outside: no packed copy of it is kept (writes to it
// are unknown), and no result of a plan and no gradient reuses it. Thread-safe.
#pragma once

#include "hybridnet/ndarray.h"

namespace hybridnet {

// Exports the array's memory for good. Its values must be computed already.
void give_out(const NDArray& array);

// True for foreign memory with too many values to compare them with a copy: nothing is computed from it in advance.
bool may_change_unseen(const NDArray& array);

// The number of exports so far, of memory of any array.
uint64_t times_given_out();

// True if the array's memory was exported since times_given_out() was `count`; it may be back already. Only the last
// 4096 exports are remembered: also true if there were more since.
bool was_given_out_since(const NDArray& array, uint64_t count);

// The array's memory counts as exported while this object lives.
class GivenOut {
 public:
  explicit GivenOut(const NDArray& array);
  ~GivenOut();
  GivenOut(const GivenOut&) = delete;

 private:
  const Ref<Chunk> chunk_;
};

}  // namespace hybridnet
