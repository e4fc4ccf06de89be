// Remembers the state of an array, to find out later whether its values may have changed. The library counts its own
// writes. Memory that code outside of the library can write is compared with a copy of its values.
//
// Threads: any thread may call every member.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "hybridnet/ndarray.h"

namespace hybridnet {

class WatchedArray {
 public:
  // The foreign memory that is compared. kSmall: only memory that is small enough to copy; of other memory
  // may_change_unseen() is true, and users must always read it.
  enum class Compared : int8_t { kAll, kSmall };
  WatchedArray(NDArray array, Compared compared);

  const NDArray& array() const { return array_; }
  // True if the array has not changed since construction, or since has_changed() last was true.
  bool holds();
  // The opposite; if true, remembers the present state.
  bool has_changed();

 private:
  Chunk& chunk() const { return array_.impl()->chunk->owner(); }
  bool is_untouched() const;
  bool still_holds();
  void remember();

  const NDArray array_;
  const Compared compared_;
  std::atomic<uint64_t> overwrites_{0}, given_out_{0};
  std::atomic<bool> has_values_{false};
  std::mutex mutex_;
  std::optional<std::vector<char>> values_;  // copy of compared foreign memory; guarded by mutex_
};

}  // namespace hybridnet
