// What was written into memory that several arrays show, so that each of them can tell what its values stem from.
//
// A mark of the tape sits on one array. When another array of the same memory is written to, the mark is stale for what
// they share. Each write is therefore noted beside the memory: its range, and what the values stem from. mark_of()
// compares: an array whose range was written to since it was marked gets a new mark, a step (ViewFunction) over the
// writes that it shows and, for what they left, over its mark before. Memory that one array shows needs none of this.
#pragma once

#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "imperative/tape.h"

namespace hybridnet {

// The same memory and the same mark in a handle of its own, for steps of the tape.
NDArray another_handle(const NDArray& array);

class WriteHistory final : public MemoryHistory {
 public:
  explicit WriteHistory(const Chunk& chunk);  // owned by it
  ~WriteHistory() override;
  // Of memory that has views; made where there is none yet.
  static WriteHistory& of(Chunk& chunk);
  static WriteHistory* find(const Chunk& chunk) {
    return static_cast<WriteHistory*>(chunk.history.load(std::memory_order_acquire));
  }

  // target was written; its new values stem from mark, or are constant where that is null.
  void note(const NDArray& target, const Ref<TapeMark>& mark);
  // The mark that says what the values of the array stem from now. Throws GradientError where the array, or what it is
  // a view of, has a gradient of its own and was overwritten by something that has a gradient, too.
  TapeMark* current(const NDArray& array);
  // A new mark for a view of the array, null where its values are constant.
  Ref<TapeMark> mark_of_view(const NDArray& array, const NDArray& view);
  // Are all writes known that happened since the value was saved?
  bool knows_since(const SavedArray& saved) const { return saved.overwrites >= first_overwrites_; }
  // Code outside of the library may write target from now on: values that were saved count as overwritten, but what the
  // arrays stem from stays.
  void note_given_out(const NDArray& target);
  // Where the saved value was overwritten, as far as the writes are known. Nothing: it is there.
  std::optional<SourceLocation> overwritten_at(const SavedArray& saved) const;

  // What the writes stem from may hold the memory itself, as saved values do. When nothing else holds it any more, the
  // notes are dropped, and all of it dies: where an array dies, as a rule, and for all memory when recording begins.
  void array_dies(const Chunk& chunk) noexcept override;
  static void drop_unseen();
  Ref<TapeInfo> constant() const override;

 private:
  struct Write {
    int64_t begin, end;   // bytes of the chunk
    uint64_t time;        // as TapeMark::time
    uint64_t overwrites;  // Chunk::overwrites behind it
    Ref<TapeMark> mark;   // null: constant
    TensorSpec spec;
    SourceLocation where;
  };
  // A range that no longer holds the values of before. It outlives the notes of writes, because saved values are
  // checked later than that.
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
  std::thread::id owner_;  // wrote last
  size_t compact_at_ = 64;
  int64_t deaths_to_wait_for_ = 0;
  std::vector<Write> writes_;
  std::vector<Overwritten> overwritten_;  // beside those of writes_
  size_t forget_at_ = 64;
};

}  // namespace hybridnet
