// A counter that many threads increment at the price of a plain increment: each has its own cell.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace hybridnet {

class ThreadCounter {
 public:
  ThreadCounter();
  void increment() {
    Cache& cache = cache_;
    std::atomic<uint64_t>& cell = cache.owner == id_ ? *cache.cell : find_cell();
    cell.store(cell.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint64_t total() const;

 private:
  struct Cell {
    alignas(64) std::atomic<uint64_t> count{0};
  };
  // The cell of the counter that this thread used last. Ids are never reused, so a stale cell is never taken for ours.
  struct Cache {
    uint64_t owner;
    std::atomic<uint64_t>* cell;
  };
  static thread_local Cache cache_ __attribute__((tls_model("initial-exec")));

  std::atomic<uint64_t>& find_cell();

  const uint64_t id_;
  mutable std::mutex mutex_;
  // By thread: when one ends, a later thread with its id goes on counting in its cell.
  std::unordered_map<std::thread::id, Cell> cells_;
};

}  // namespace hybridnet
