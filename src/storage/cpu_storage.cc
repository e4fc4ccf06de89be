// The CPU's Storage: a CpuPool and the caches of the calling thread.
#include <algorithm>
#include <string>
#include <vector>

#include "hybridnet/env.h"
#include "hybridnet/error.h"
#include "hybridnet/storage.h"
#include "storage/cpu_pool.h"

namespace hybridnet {
namespace {

// The cache used last. initial-exec, because every allocation reads it: the access needs no call.
struct CurrentCache {
  uint64_t pool_id;
  ThreadCache* cache;
};
thread_local CurrentCache current_cache __attribute__((tls_model("initial-exec"))) = {0, nullptr};
thread_local bool thread_ends __attribute__((tls_model("initial-exec"))) = false;

// The caches of this thread, one per storage: programs have one storage, tests make more.
class ThreadCaches {
 public:
  ~ThreadCaches() {
    thread_ends = true;  // other objects of the thread may free blocks after this
    current_cache = {0, nullptr};
    for (const Entry& entry : entries_) entry.pool->retire(entry.cache);
  }

  ThreadCache* of(const std::shared_ptr<CpuPool>& pool) {
    for (const Entry& entry : entries_) {
      if (entry.pool == pool) return entry.cache;
    }
    forget_dead_pools();
    entries_.push_back({pool, pool->add_cache()});
    return entries_.back().cache;
  }

 private:
  struct Entry {
    std::shared_ptr<CpuPool> pool;  // lives until its storage and all threads that used it are gone
    ThreadCache* cache;
  };
  void forget_dead_pools() {
    std::erase_if(entries_, [](const Entry& entry) { return entry.pool.use_count() == 1; });
  }
  std::vector<Entry> entries_;
};
thread_local ThreadCaches thread_caches;

// -1: no limit.
int64_t bytes_of(int64_t megabytes) { return megabytes < 0 ? -1 : megabytes << 20; }
int64_t pool_limit_bytes() { return bytes_of(environment().pool_reserve_mb); }
int64_t derived_limit_bytes() { return bytes_of(environment().packed_limit_mb); }

class CpuStorage final : public Storage {
 public:
  explicit CpuStorage(int64_t pool_limit)
      : pool_(std::make_shared<CpuPool>(pool_limit)), derived_(derived_limit_bytes()) {}
  ~CpuStorage() override { pool_->release(); }

  Block allocate(int64_t bytes) override {
    if (bytes <= 0) {
      if (bytes < 0) throw ValueError({.expected = "a size of 0 or more bytes", .given = std::to_string(bytes)});
      return {};
    }
    return pool_->allocate(bytes, cache());
  }
  void free(Block block) override {
    if (block.data != nullptr) pool_->free(block, cache());
  }
  void release_pool() override { pool_->release(); }
  Statistics statistics() const override {
    Statistics s = pool_->statistics();
    s.derived = derived_.bytes();
    return s;
  }
  DerivedBudget& derived_budget() override { return derived_; }
  void reset_peak() override { pool_->reset_peak(); }
  void before_fork() override {
    derived_.before_fork();
    pool_->before_fork();
  }
  void after_fork(bool in_child) override {
    pool_->after_fork(in_child, current_cache.pool_id == pool_->id ? current_cache.cache : nullptr);
    derived_.after_fork();
  }

 private:
  ThreadCache* cache() {
    if (current_cache.pool_id == pool_->id) return current_cache.cache;
    return find_cache();
  }
  ThreadCache* find_cache() {
    if (thread_ends) return nullptr;
    current_cache = {pool_->id, thread_caches.of(pool_)};
    return current_cache.cache;
  }

  const std::shared_ptr<CpuPool> pool_;
  DerivedBudget derived_;
};

}  // namespace

std::unique_ptr<Storage> make_cpu_storage() { return make_cpu_storage(pool_limit_bytes()); }
std::unique_ptr<Storage> make_cpu_storage(int64_t pool_limit) { return std::make_unique<CpuStorage>(pool_limit); }

}  // namespace hybridnet
