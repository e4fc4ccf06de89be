// A counter that many threads increment at the cost of a plain increment: each thread has its own cell.
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
  // The counter that this thread used last, and its cell. Ids are not reused, so a stale cell never matches.
  struct Cache {
    uint64_t owner;
    std::atomic<uint64_t>* cell;
  };
  static thread_local Cache cache_ __attribute__((tls_model("initial-exec")));

  std::atomic<uint64_t>& find_cell();

  const uint64_t id_;
  mutable std::mutex mutex_;
  // By thread. A later thread with the id of an ended one continues with its cell.
  std::unordered_map<std::thread::id, Cell> cells_;
};

}  // namespace hybridnet
