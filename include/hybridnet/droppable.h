// Arrays that can be computed again, such as parameters that batch norms were folded into. The memory of one is dropped
// while all that read it have copies of it, and filled again for a reader of the array itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "hybridnet/stand_in.h"

namespace hybridnet {

// Threads: every member is safe from any thread, beside add().
class DroppableArrays {
 public:
  DroppableArrays() = default;
  virtual ~DroppableArrays() = default;
  DroppableArrays(const DroppableArrays&) = delete;

  void add(void* data, int64_t bytes);  // the next array; it has its values
  void drop(size_t array) noexcept;     // does nothing while it is read, and once it is kept
  void keep(size_t array);              // it has its values from now on
  void begin_reading(size_t array);     // it has its values until end_reading()
  void end_reading(size_t array) noexcept;
  bool is_kept(size_t array) const { return arrays_[array].kept.load(std::memory_order_acquire); }
  // Arrays are computed together. Drops those that were only computed because another one was asked for.
  void drop_again() noexcept;
  // What copies of an array tell (DerivedData::offer) may tell what it was computed from.
  // end_offers: the copy is kept, or not.
  virtual void offer(size_t /*array*/, const StandIn::Values& /*values*/) {}
  virtual void end_offers(size_t /*array*/, bool /*accepted*/) {}
  size_t num_computed() const { return num_computed_.load(std::memory_order_relaxed); }  // how often that was so far

 protected:
  // Gives the arrays with these positions their values again, in the memory that they had.
  virtual void compute(const std::vector<size_t>& arrays) = 0;

 private:
  struct Array {
    Array(void* p, int64_t n) : pages(p), bytes(n) {}
    Array(Array&& other) noexcept : pages(other.pages), bytes(other.bytes) {}
    void* const pages;  // whole pages inside; null: there are none
    const int64_t bytes;
    std::atomic<bool> kept{false};
    bool dropped = false, restored = false;
    int readers = 0;
  };
  void fill(size_t array);
  static void drop(Array& array) noexcept;

  std::mutex mutex_;
  std::vector<Array> arrays_;
  std::atomic<bool> any_restored_{false};
  std::atomic<size_t> num_computed_{0};
};

}  // namespace hybridnet
