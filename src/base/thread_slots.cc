#include "base/thread_slots.h"

namespace hybridnet {

size_t thread_slot() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t slot = threads.fetch_add(1, std::memory_order_relaxed) % kThreadSlots;
  return slot;
}

}  // namespace hybridnet
