// Small free blocks of one thread, and counts of its allocations. Only its thread uses it, except that release_pool()
// empties it from other threads. So it has a lock, which costs its owner one uncontended atomic exchange.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "storage/size_class.h"

namespace hybridnet {

class ThreadCache {
 public:
  class Lock {
   public:
    explicit Lock(ThreadCache& cache) : flag_(cache.locked_) {
      while (flag_.exchange(true, std::memory_order_acquire)) {
      }
    }
    ~Lock() { flag_.store(false, std::memory_order_release); }
    Lock(const Lock&) = delete;

   private:
    std::atomic<bool>& flag_;
  };

  // The members below need Lock. The first bytes of a free block point to the next one.
  void* take(int size_class) {
    List& list = lists_[size_class];
    void* block = list.first;
    if (block == nullptr) return nullptr;
    list.first = *static_cast<void**>(block);
    --list.count;
    add(bytes_, -class_bytes(size_class));
    return block;
  }
  void put(int size_class, void* block) {
    List& list = lists_[size_class];
    *static_cast<void**>(block) = list.first;
    list.first = block;
    ++list.count;
    add(bytes_, class_bytes(size_class));
  }
  int count(int size_class) const { return lists_[size_class].count; }

  // The owner writes the counts; threads that collect statistics read them.
  void count_allocation(int64_t bytes) {
    add(allocations_, 1);
    add(in_use_, bytes);
  }
  void count_free(int64_t bytes) { add(in_use_, -bytes); }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t in_use() const { return in_use_.load(std::memory_order_relaxed); }
  int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }
  int64_t take_in_use() {
    const int64_t bytes = in_use();
    in_use_.store(0, std::memory_order_relaxed);
    return bytes;
  }

 private:
  struct List {
    void* first = nullptr;
    int count = 0;
  };
  static void add(std::atomic<int64_t>& counter, int64_t delta) {
    counter.store(counter.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
  }

  std::atomic<bool> locked_{false};
  std::atomic<int64_t> bytes_{0};   // bytes of the free blocks in this cache
  std::atomic<int64_t> in_use_{0};  // allocated minus freed by this thread, since it was last added to the pool's
  std::atomic<int64_t> allocations_{0};
  std::array<List, kCachedClasses> lists_;
};

}  // namespace hybridnet
