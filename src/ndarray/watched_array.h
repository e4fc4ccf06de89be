// An array as it was at one time, to find out later whether its values may be others now. The library counts its own
// writes. Memory that code outside of the library can write is compared with a copy of its values.
//
// Threads: from any.
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
  // Which foreign memory is compared. kSmall: the user reads the memory itself where may_change_unseen() says so.
  enum class Compared : int8_t { kAll, kSmall };
  WatchedArray(NDArray array, Compared compared);

  const NDArray& array() const { return array_; }
  // Is it as it was when it was made, or when has_changed() last was true?
  bool holds();
  // The opposite; from then on the array as it is now counts.
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
  std::optional<std::vector<char>> values_;  // of foreign memory that is compared; guarded by mutex_
};

}  // namespace hybridnet
