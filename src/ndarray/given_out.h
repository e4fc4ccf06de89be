// Memory that code outside of the library can write, because it was given out: by DLPack, as a pointer, as a buffer.
//
// It counts as foreign memory from then on, as if it had come from outside: no packed copy of it is kept (its writes
// are unknown), no result of a plan and no gradient takes it over. Threads: from any.
#pragma once

#include "hybridnet/ndarray.h"

namespace hybridnet {

// The array's values are there, and nobody knows when the other side is done with them.
void give_out(const NDArray& array);

// Foreign memory whose values are too many to be compared with what they were: nothing is computed of it in advance.
bool may_change_unseen(const NDArray& array);

// Counts every time that memory of any array is given out.
uint64_t times_given_out();

// Was the array's memory given out since times_given_out() was `count`? It may be back already. Only the last 4096
// times are remembered: true as well where there were more since.
bool was_given_out_since(const NDArray& array, uint64_t count);

// While it lives, the other side has the memory.
class GivenOut {
 public:
  explicit GivenOut(const NDArray& array);
  ~GivenOut();
  GivenOut(const GivenOut&) = delete;

 private:
  const Ref<Chunk> chunk_;
};

}  // namespace hybridnet
