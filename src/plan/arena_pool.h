// Memory for plans to run in. Plans that never run at one time share an arena: the forward and backward plans of all
// signatures of a graph function lie in one block, which is as large as the largest of them needs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread_slots.h"
#include "hybridnet/engine.h"
#include "hybridnet/storage.h"

namespace hybridnet {

// Sizes:   an arena that is too small grows by half or to the bytes needed, whichever is more; an arena of which 64
//          uses in a row needed less than a quarter shrinks to the most that they needed. Arenas that only a burst of
//          concurrent calls needed are freed.
// Threads: every member is safe from any thread. Runs that overlap in time get different arenas.
class ArenaPool : public RefCounted<ArenaPool> {
 public:
  struct Arena {
    ~Arena() { release(); }
    void release();
    Storage::Block block;
    int64_t asked = 0;        // bytes requested from the storage for block
    int64_t most_needed = 0;  // by the uses since the size was last judged
    int uses = 0;
    bool used = true;  // since the pool was last swept
  };

  // Lock-free if the arena that this thread returned last fits and is not much too large. Throws OutOfMemoryError.
  std::unique_ptr<Arena> take(int64_t bytes, Device device);
  void give(std::unique_ptr<Arena> arena);
  // From now on runs that use this pool take turns, so that one arena is enough for all: each writes the variable
  // turn().
  void take_turns() { takes_turns_ = true; }
  Var* turn() { return takes_turns_ ? &turn_ : nullptr; }
  // Returns the pool for the bodies of loops and branches: they run while the plan around them uses an arena of this
  // pool.
  Ref<ArenaPool> for_bodies();

 private:
  static constexpr int kUsesBetweenSweeps = 64;

  std::unique_ptr<Arena> take_kept(int64_t bytes);
  static void resize(Arena& arena, int64_t bytes, Device device);
  void sweep(Arena& in_use, int64_t bytes, Device device);

  ThreadSlots<std::unique_ptr<Arena>> spares_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Arena>> kept_;
  Ref<ArenaPool> for_bodies_;
  std::atomic<bool> takes_turns_{false};
  Var turn_;
};

}  // namespace hybridnet
