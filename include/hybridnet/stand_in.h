// A packed copy that stands in for the values of an array: the pages of the values go back to the system. They are
// written again, with the same bits, for whoever asks for the array's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>

namespace hybridnet {

// Threads: every member is safe from any thread. Who uses the memory of the array does so in a task that the engine
//          orders, or has pinned it: release() is called by a task that is alone with the array, and looks for pins.
class StandIn {
 public:
  struct Values {
    void* data = nullptr;  // where they are: all of the array's memory, or a part of it
    int64_t bytes = 0;
    std::function<void(void* data)> unpack;  // owns the copy; runs at most once, on any thread
  };
  static constexpr int64_t kMinBytes = int64_t{64} << 10;  // fewer are hardly whole pages

  StandIn() = default;
  ~StandIn() { set_state(State::kNone); }
  StandIn(const StandIn&) = delete;

  // A copy is being made of values that nobody writes meanwhile. Does nothing where another copy stands in, and once
  // the memory stays.
  void offer(Values values);
  void accept();    // the copy is kept: the values may be released
  void withdraw();  // the array was written; does nothing while its values are released
  bool is_accepted() const { return state_.load(std::memory_order_relaxed) == State::kAccepted; }
  static bool any_accepted() { return accepted_.load(std::memory_order_relaxed) > 0; }
  // memory: where others look for the array's memory; null from now on. pins: how many use it outside of tasks.
  void release(void*& memory, const std::atomic<int32_t>& pins) noexcept;
  // The values are in the memory again, and stay there until a further copy stands in; stays: for good.
  void restore(bool stays);
  bool is_released() const { return state_.load(std::memory_order_acquire) == State::kReleased; }
  // That `memory` had before release().
  void* address() const { return address_.load(std::memory_order_acquire); }

 private:
  enum class State : int8_t { kNone, kOffered, kAccepted, kReleased };
  void set_state(State state);  // under the lock

  static inline std::atomic<int64_t> accepted_{0};  // how many are
  std::mutex mutex_;
  std::atomic<State> state_{State::kNone};
  std::atomic<void*> address_{nullptr};
  bool stays_ = false;
  Values values_;
  void** memory_ = nullptr;
};

}  // namespace hybridnet
