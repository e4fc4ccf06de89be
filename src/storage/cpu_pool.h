// Free blocks of CPU memory by size class. A request takes a block from the cache of its thread (small blocks), then
// from the lists here, then from the system. A freed block goes back the same way.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hybridnet/storage.h"
#include "storage/size_class.h"
#include "storage/thread_cache.h"

namespace hybridnet {

class CpuPool {
 public:
  explicit CpuPool(int64_t limit_bytes);  // limits the memory kept for reuse; below 0: no limit
  ~CpuPool() { release(); }

  // bytes > 0. `cache`: the calling thread's cache, or null if the thread has none because it is ending.
  Storage::Block allocate(int64_t bytes, ThreadCache* cache);
  void free(const Storage::Block& block, ThreadCache* cache);
  void release();  // returns all free memory to the system, including the threads' caches

  ThreadCache* add_cache();
  void retire(ThreadCache* cache);  // its thread ends

  Storage::Statistics statistics();
  void reset_peak();
  void before_fork() { mutex_.lock(); }
  void after_fork(bool in_child, const ThreadCache* own);

  const uint64_t id;  // never used for another pool

 private:
  using Guard = std::lock_guard<std::mutex>;

  void* take_or_fill(int size_class, int64_t asked, ThreadCache& cache);
  void put_or_flush(int size_class, void* data, ThreadCache& cache);
  void* take_pooled(int64_t* bytes);
  void* take_pooled_huge(int64_t* bytes);
  std::vector<std::pair<int64_t, void*>> take_outgrown(int64_t bytes);
  void count_huge(int64_t bytes);
  void put_pooled(void* data, int64_t bytes);
  void flush(ThreadCache& cache, int size_class, int keep);
  void* from_system(int64_t bytes, int64_t asked);
  void add_in_use(int64_t bytes);
  void settle(ThreadCache& cache);
  [[noreturn]] void throw_out_of_memory(int64_t bytes);

  const int64_t limit_;
  const int64_t cache_limit_;  // bytes in the cache of one thread, for all classes together
  std::atomic<int64_t> in_use_{0};
  std::atomic<int64_t> peak_{0};
  std::atomic<int64_t> system_allocations_{0};
  std::atomic<int64_t> allocations_{0};  // not counted in a cache
  std::mutex mutex_;                     // guards the rest; order: before the lock of a cache, never after it
  int64_t pooled_ = 0;                   // bytes in free_ and free_huge_
  std::array<std::vector<void*>, kClasses> free_;
  std::multimap<int64_t, void*> free_huge_;  // above kClassLimit, by size
  // Bytes of blocks above kClassLimit: in use, the maximum in use so far, and in free_huge_.
  int64_t huge_in_use_ = 0, huge_needed_ = 0, huge_pooled_ = 0;
  std::vector<std::unique_ptr<ThreadCache>> caches_;
};

}  // namespace hybridnet
