#include "storage/evictable_values.h"

#include <utility>

#include "storage/system_memory.h"

namespace hybridnet {

void EvictableValues::set_state(State state) {
  const State before = state_.exchange(state, std::memory_order_acq_rel);
  if (before == State::kAccepted) accepted_.fetch_sub(1, std::memory_order_relaxed);
  if (state == State::kAccepted) accepted_.fetch_add(1, std::memory_order_relaxed);
  if (state == State::kNone) values_ = {};
}

void EvictableValues::offer(Values values) {
  if (values.bytes < kMinBytes) return;
  const std::lock_guard lock(mutex_);
  if (stays_ || state_.load(std::memory_order_relaxed) != State::kNone) return;
  values_ = std::move(values);
  set_state(State::kOffered);
}

void EvictableValues::accept() {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) == State::kOffered) set_state(State::kAccepted);
}

void EvictableValues::withdraw() {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::kReleased) set_state(State::kNone);
}

void EvictableValues::release(void*& memory, const std::atomic<int32_t>& pins) noexcept {
  const std::lock_guard lock(mutex_);
  if (state_.load(std::memory_order_relaxed) != State::kAccepted) return;
  const std::atomic_ref<void*> found(memory);
  void* const address = found.exchange(nullptr);
  // A thread pins the memory first and then reads `memory`. So either it reads null and waits for the lock, or its pin
  // is seen here.
  if (pins.load() != 0) {
    found.store(address);
    return set_state(State::kNone);
  }
  const Pages whole = whole_pages(values_.data, values_.bytes);
  if (whole.bytes > 0) drop_pages(whole.data, whole.bytes);
  memory_ = &memory;
  address_.store(address, std::memory_order_release);
  set_state(State::kReleased);
}

void EvictableValues::restore(bool stays) {
  const std::lock_guard lock(mutex_);
  const bool released = state_.load(std::memory_order_relaxed) == State::kReleased;
  if (released) {
    values_.unpack(values_.data);
    std::atomic_ref<void*>(*memory_).store(address_.load(std::memory_order_relaxed), std::memory_order_release);
  }
  stays_ = stays_ || stays;
  if (released || stays) set_state(State::kNone);
}

}  // namespace hybridnet
