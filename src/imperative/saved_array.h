// A value that a step of the tape keeps for its gradient, with a check whether the value was overwritten since.
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
  bool is_range_overwritten() const;  // for memory with a write history (write_history.h)
};

// True if a value of this memory was ever saved.
inline bool was_saved(Chunk& chunk) { return chunk.owner().overwrite_line.load(std::memory_order_relaxed) != 0; }

// Counts a write into the memory by the current source line. The line is stored only for memory with saved values.
inline void count_overwrite(Chunk& chunk) {
  chunk.overwrites.fetch_add(1, std::memory_order_relaxed);
  if (chunk.overwrite_line.load(std::memory_order_relaxed) == 0) return;
  const SourceLocation where = current_location();
  chunk.overwrite_file.store(where.file, std::memory_order_relaxed);
  chunk.overwrite_line.store(where.line, std::memory_order_relaxed);
}

// `input`: the name of the value among the inputs and outputs of `op`. recorded: where the step was recorded, if known.
[[noreturn]] void throw_overwritten(const std::string& op, const std::string& input, const SavedArray& saved,
                                    SourceLocation recorded);

}  // namespace hybridnet
