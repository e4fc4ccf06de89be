// Records the writes into memory that several arrays show, so that each array can find the steps that its values depend
// on.
//
// A mark of the tape belongs to one array. When another array of the same memory is written to, the mark is stale for
// the elements that they share. Each write is therefore noted beside the memory: its range, and the mark of the values.
// mark_of() compares: an array whose range was written to since it was marked gets a new mark, a step (ViewFunction)
// whose inputs are the writes that it shows and, for the remaining bytes, its mark before. Memory that one array shows
// needs none of this.
#pragma once

#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "imperative/tape.h"

namespace hybridnet {

// Returns another handle with the same memory and the same mark, for steps of the tape.
NDArray another_handle(const NDArray& array);

class WriteHistory final : public MemoryHistory {
 public:
  explicit WriteHistory(const Chunk& chunk);  // owned by the chunk
  ~WriteHistory() override;
  // Returns the history of memory that has views; makes it if there is none yet.
  static WriteHistory& of(Chunk& chunk);
  static WriteHistory* find(const Chunk& chunk) {
    return static_cast<WriteHistory*>(chunk.history.load(std::memory_order_acquire));
  }

  // Notes that target was written. mark: the mark of its new values; null: they are constant.
  void note(const NDArray& target, const Ref<TapeMark>& mark);
  // Returns the mark of the array's current values. Throws GradientError if the array, or the leaf that it is a view
  // of, has a gradient of its own and was overwritten by values that have a gradient, too.
  TapeMark* current(const NDArray& array);
  // Returns a new mark for a view of the array; null if its values are constant.
  Ref<TapeMark> mark_of_view(const NDArray& array, const NDArray& view);
  // True if all writes since the value was saved are known.
  bool knows_since(const SavedArray& saved) const { return saved.overwrites >= first_overwrites_; }
  // Notes that code outside of the library may write target from now on: saved values count as overwritten, but the
  // arrays keep their marks.
  void note_given_out(const NDArray& target);
  // Returns where the saved value was overwritten, as far as the writes are known; nullopt: it was not overwritten.
  std::optional<SourceLocation> overwritten_at(const SavedArray& saved) const;

  // The marks of the writes may hold the memory itself, as saved values do. When nothing else holds it any more, the
  // notes are dropped, and everything is freed: usually when an array dies, and for all memory when recording begins.
  void array_dies(const Chunk& chunk) noexcept override;
  static void drop_unseen();
  Ref<TapeInfo> constant() const override;

 private:
  struct Write {
    int64_t begin, end;   // byte offsets in the chunk
    uint64_t time;        // see TapeMark::time
    uint64_t overwrites;  // Chunk::overwrites after the write
    Ref<TapeMark> mark;   // null: constant
    TensorSpec spec;
    SourceLocation where;
  };
  // A range whose earlier values were overwritten. It outlives the notes of writes, because saved values may be checked
  // after these are dropped.
  struct Overwritten {
    int64_t begin, end;
    uint64_t overwrites;
    SourceLocation where;
  };
  struct Dropped {
    std::vector<std::vector<Write>> writes;
    std::vector<NDArray> handles;
  };
  struct Base {
    Ref<TapeMark> mark;  // null: constant
    uint64_t time = 0;
    int64_t begin = 0;
    TensorSpec spec;
  };
  static Base base_of(const NDArray& array);
  const Write* last_overlap(const NDArray& array, uint64_t since, bool recorded) const;
  void refuse_overwritten_leaf(const NDArray& array, const TapeMark& own) const;
  Ref<TapeMark> mark_now(const NDArray& array, TapeMark* own) const;
  Ref<TapeMark> compose(const Base& base, const NDArray& view) const;

  void drop_if_unseen(int64_t dying, Dropped* dropped);
  void add_overwritten(Overwritten range);

  const Chunk& chunk_;
  const uint64_t first_overwrites_;
  mutable std::mutex mutex_;
  std::atomic<uint64_t> last_time_{0};
  bool is_open_ = false;   // has had writes with gradients
  std::thread::id owner_;  // the thread that last wrote values with a gradient
  size_t compact_at_ = 64;
  int64_t deaths_to_wait_for_ = 0;
  std::vector<Write> writes_;
  std::vector<Overwritten> overwritten_;  // in addition to those of writes_
  size_t forget_at_ = 64;
};

}  // namespace hybridnet
