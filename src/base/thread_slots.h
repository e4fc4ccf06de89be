// Spare objects, one for each of a few groups of threads: a few threads that take and give back the same kind of object
// use different cache lines.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "hybridnet/base.h"

namespace hybridnet {

constexpr size_t kThreadSlots = 8;
constexpr size_t kCacheLine = 64;

// The group of the calling thread. Threads that call this first one after the other are in different groups.
size_t thread_slot();

// Owner: std::unique_ptr<T> or Ref<T>. No member takes a lock or allocates; all are safe from any thread.
template <typename Owner>
class ThreadSlots {
 public:
  ThreadSlots() = default;
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;
  ~ThreadSlots() {
    for (size_t i = 0; i < kThreadSlots; ++i) take_from(i);
  }

  // Takes the spare object of this thread's group; null if there is none.
  Owner take() { return take_from(thread_slot()); }
  // Takes the spare object of any group.
  Owner take_any() {
    for (size_t i = 0; i < kThreadSlots; ++i)
      if (Owner found = take_from(i)) return found;
    return Owner();
  }
  // Gives `spare` back, which is null afterwards, unless this group has a spare object already.
  void give(Owner& spare) { give_to(thread_slot(), spare); }

  // Drops the spare objects for which keeps() is false. Objects that threads give back meanwhile may be dropped, too.
  template <typename Keeps>
  void sweep(Keeps keeps) {
    for (size_t i = 0; i < kThreadSlots; ++i)
      if (Owner found = take_from(i); found && keeps(*found)) give_to(i, found);
  }

 private:
  using T = std::remove_reference_t<decltype(*std::declval<Owner&>())>;
  struct alignas(kCacheLine) Slot {
    std::atomic<T*> object{nullptr};
  };

  Owner take_from(size_t slot) {
    std::atomic<T*>& object = slots_[slot].object;
    if (object.load(std::memory_order_relaxed) == nullptr) return Owner();
    T* found = object.exchange(nullptr, std::memory_order_acquire);
    if constexpr (std::is_same_v<Owner, Ref<T>>)
      return Owner::adopt(found);
    else
      return Owner(found);
  }
  void give_to(size_t slot, Owner& spare) {
    T* none = nullptr;
    if (!spare || !slots_[slot].object.compare_exchange_strong(none, spare.get(), std::memory_order_release,
                                                               std::memory_order_relaxed))
      return;
    if constexpr (std::is_same_v<Owner, Ref<T>>)
      spare.detach();
    else
      spare.release();
  }

  std::array<Slot, kThreadSlots> slots_;
};

}  // namespace hybridnet
