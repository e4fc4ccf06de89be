// Everything that engines do with a variable: acquiring it without a lock, its FIFO, its error.
//
// Var::state_ holds the number of running readers, whether a writer runs, whether slots wait in the FIFO, and whether
// an error is stored. While nothing waits, one atomic operation grants an access and one ends it. A slot that cannot be
// granted goes into the FIFO and sets kQueued. From then on every access goes through the FIFO, which keeps the order;
// the thread that ends an access and finds kQueued set must dispatch the FIFO. kQueued, the FIFO and the error change
// under the engine's mutex only.
#pragma once

#include <condition_variable>
#include <vector>

#include "base/write_listener.h"
#include "engine/task.h"
#include "engine/task_error.h"

namespace hybridnet {

// The place of a wait in a FIFO. It is done when an access would be granted; it acquires nothing, so it delays no task.
struct WaitMarker : Slot {
  WaitMarker(Var& waited, bool for_readers_too) { var = &waited, write = for_readers_too; }
  std::atomic<bool> done{false};     // set under the engine's mutex
  std::condition_variable signaled;  // with the engine's mutex
};

class VarQueue {
 public:
  // ---- without a lock

  // Acquires the variable if no access conflicts, no slot waits and no error is stored.
  static bool try_acquire_read(Var& var) {
    uint64_t state = var.state_.load(std::memory_order_relaxed);
    do {
      if (state & ~kReaders) return false;
    } while (!var.state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed));
    return true;
  }
  static bool try_acquire_write(Var& var) {
    uint64_t free = 0;
    return var.state_.compare_exchange_strong(free, kWriter, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Both return true when slots wait for the variable: the caller must dispatch() it.
  static bool release_read(Var& var) { return var.state_.fetch_sub(1, std::memory_order_acq_rel) & kQueued; }
  static bool release_write(Var& var) {  // counts as a write
    if (WriteListener* listener = var.write_listener_.load(std::memory_order_acquire)) listener->on_write();
    var.version_.store(var.version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return cancel_write(var);
  }
  static bool cancel_write(Var& var) { return var.state_.fetch_sub(kWriter, std::memory_order_acq_rel) & kQueued; }
  static bool release(const Slot& slot) { return slot.write ? release_write(*slot.var) : release_read(*slot.var); }
  // Turn the only reader into a writer, and back. Accesses requested meanwhile wait until that task ends its access.
  static bool try_exclude_others(Var& var) {
    uint64_t alone = 1;
    return var.state_.compare_exchange_strong(alone, kWriter, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  static void admit_others(Var& var) { var.state_.fetch_sub(kWriter - 1, std::memory_order_acq_rel); }

  static bool idle_for_readers(const Var& var) { return (var.state_.load(std::memory_order_acquire) & ~kReaders) == 0; }
  static bool has_error_bit(const Var& var) { return var.state_.load(std::memory_order_acquire) & kError; }

  // ---- under the engine's mutex

  // True: granted at once. False: the slot waits, and a later dispatch() grants it.
  static bool acquire_or_enqueue(Slot& slot) noexcept;
  // The same, but never enqueues the slot.
  static bool try_acquire(const Slot& slot);
  // Grants slots from the front of the FIFO; tasks that wait for nothing else are appended to `ready`.
  static void dispatch(Var& var, std::vector<QueuedTask*>& ready);

  static TaskErrorRef error(Var& var);  // null if none is stored or it was cleared
  static void set_error(Var& var, TaskErrorRef error);
  static TaskErrorRef take_error(Var& var);

 private:
  static constexpr uint64_t kReaders = 0xffffffffu;
  static constexpr uint64_t kWriter = uint64_t{1} << 32;
  static constexpr uint64_t kQueued = uint64_t{1} << 33;
  static constexpr uint64_t kError = uint64_t{1} << 34;

  static bool compatible(uint64_t state, bool write) { return (state & (write ? kWriter | kReaders : kWriter)) == 0; }
  // One atomic operation: acquires the variable for the slot (a wait acquires nothing), or marks it as queued.
  static bool take_or_mark(const Slot& slot, bool mark) noexcept;
};

}  // namespace hybridnet
