// A value that a step of the tape keeps for its gradient, and how to tell that it is gone.
#pragma once

#include <string>

#include "hybridnet/error.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

struct SavedArray {
  NDArray array;            // null: nothing is saved
  uint64_t overwrites = 0;  // Chunk::overwrites when saved

  static SavedArray of(const NDArray& a) {
    Chunk& chunk = *a.impl()->chunk;
    watch_overwrites(chunk);
    return {a, chunk.overwrites.load(std::memory_order_relaxed)};
  }
  bool is_overwritten() const {
    const Chunk& chunk = *array.impl()->chunk;
    return chunk.overwritten_since(overwrites) &&
           (chunk.history.load(std::memory_order_acquire) == nullptr || is_range_overwritten());
  }

 private:
  bool is_range_overwritten() const;  // where writes into parts of the memory are known (write_history.h)
};

// Was a value of this memory ever saved?
inline bool was_saved(Chunk& chunk) { return chunk.owner().overwrite_line.load(std::memory_order_relaxed) != 0; }

// A write into the memory, in the line that runs. The line is stored only for memory of which a value was saved.
inline void count_overwrite(Chunk& chunk) {
  chunk.overwrites.fetch_add(1, std::memory_order_relaxed);
  if (chunk.overwrite_line.load(std::memory_order_relaxed) == 0) return;
  const SourceLocation where = current_location();
  chunk.overwrite_file.store(where.file, std::memory_order_relaxed);
  chunk.overwrite_line.store(where.line, std::memory_order_relaxed);
}

// `input`: what the step `op` calls the value. recorded: where it was recorded, if that is known.
[[noreturn]] void throw_overwritten(const std::string& op, const std::string& input, const SavedArray& saved,
                                    SourceLocation recorded);

}  // namespace hybridnet
