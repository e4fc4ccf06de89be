// A packed copy that replaces the values of an array: the pages of the values return to the system. The values are
// written again, with the same bits, when code needs the array's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

namespace hybridnet {

// Threads: every member is safe from any thread. Users of the array's memory are tasks that the engine orders, or have
//          pinned it: release() is called by a task that is the only user of the array, and checks for pins.
class EvictableValues {
 public:
  struct Values {
    void* data = nullptr;  // the address of the values: all of the array's memory, or a part of it
    int64_t bytes = 0;
    std::function<void(void* data)> unpack;  // owns the copy; runs at most once, on any thread
  };
  static constexpr int64_t kMinBytes = int64_t{64} << 10;  // fewer are hardly whole pages

  EvictableValues() = default;
  ~EvictableValues() { set_state(State::kNone); }
  EvictableValues(const EvictableValues&) = delete;

  // Announces a copy that is being made of the values, which must not be written meanwhile. Does nothing if there is
  // another copy already, or if the memory stays for good.
  void offer(Values values);
  void accept();    // the copy is kept: the values may be released
  void withdraw();  // the array was written; does nothing while its values are released
  bool is_accepted() const { return state_.load(std::memory_order_relaxed) == State::kAccepted; }
  static bool any_accepted() { return accepted_.load(std::memory_order_relaxed) > 0; }
  // memory: the array's pointer to its memory; becomes null. pins: the number of users outside of tasks.
  void release(void*& memory, const std::atomic<int32_t>& pins) noexcept;
  // Writes the values into the memory again. They stay there until another copy replaces them or, if `stays`, for good.
  void restore(bool stays);
  bool is_released() const { return state_.load(std::memory_order_acquire) == State::kReleased; }
  // The address that `memory` held before release().
  void* address() const { return address_.load(std::memory_order_acquire); }

 private:
  enum class State : int8_t { kNone, kOffered, kAccepted, kReleased };
  void set_state(State state);  // under the lock

  static inline std::atomic<int64_t> accepted_{0};  // number of stand-ins in state kAccepted
  std::mutex mutex_;
  std::atomic<State> state_{State::kNone};
  std::atomic<void*> address_{nullptr};
  bool stays_ = false;
  Values values_;
  void** memory_ = nullptr;
};

}  // namespace hybridnet
