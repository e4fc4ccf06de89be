// Arrays that can be computed again, such as parameters that batch norms were folded into. The memory of an array is
// dropped while all its readers use copies, and filled again for a reader of the array itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "storage/evictable_values.h"

namespace hybridnet {

// Threads: every member is safe from any thread, except add().
class RecomputableArrays {
 public:
  RecomputableArrays() = default;
  virtual ~RecomputableArrays() = default;
  RecomputableArrays(const RecomputableArrays&) = delete;

  void add(void* data, int64_t bytes);  // the next array, with its values
  void drop(size_t array) noexcept;     // does nothing while the array is read, and once it is kept
  void keep(size_t array);              // the array has its values from now on
  void begin_reading(size_t array);     // the array has its values until end_reading()
  void end_reading(size_t array) noexcept;
  bool is_kept(size_t array) const { return arrays_[array].kept.load(std::memory_order_acquire); }
  // Dropped arrays are computed all together. Drops those that were only computed because another one was needed.
  void drop_again() noexcept;
  // offer(): a copy of an array can restore its values (DerivedData::offer), and so the inputs that the array contains.
  // end_offers(): the copy is kept, or not.
  virtual void offer(size_t /*array*/, const EvictableValues::Values& /*values*/) {}
  virtual void end_offers(size_t /*array*/, bool /*accepted*/) {}
  size_t num_computed() const { return num_computed_.load(std::memory_order_relaxed); }  // number of compute() calls

 protected:
  // Computes the values of the arrays at these positions again, in their old memory.
  virtual void compute(const std::vector<size_t>& arrays) = 0;

 private:
  struct Array {
    Array(void* p, int64_t n) : pages(p), bytes(n) {}
    Array(Array&& other) noexcept : pages(other.pages), bytes(other.bytes) {}
    void* const pages;  // the whole pages of the memory; null: there are none
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
