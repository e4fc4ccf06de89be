#include "storage/cpu_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hybridnet/error.h"
#include "storage/system_memory.h"

namespace hybridnet {
namespace {

constexpr int64_t kLargestRequest = INT64_MAX - kHugeStep;
constexpr int64_t kCacheBytes = int64_t{4} << 20;
constexpr int64_t kCacheClassBytes = 256 * 1024;  // limit for one class of one thread
constexpr int64_t kInUseSlack = 64 * 1024;        // a thread adds its count to the pool's when it differs by this

constexpr int most_cached(int size_class) {
  return static_cast<int>(std::clamp<int64_t>(kCacheClassBytes / class_bytes(size_class), 4, 64));
}

// The first bytes, which link free blocks, must stay accessible.
void forbid_free_block(void* data, int64_t bytes) {
  forbid_access(static_cast<char*>(data) + sizeof(void*), bytes - static_cast<int64_t>(sizeof(void*)));
}

uint64_t next_pool_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

CpuPool::CpuPool(int64_t limit_bytes)
    : id(next_pool_id()),
      limit_(limit_bytes),
      cache_limit_(limit_bytes < 0 ? kCacheBytes : std::min(limit_bytes, kCacheBytes)) {}

// --- allocate and free ---------------------------------------------------------------------------------------------

Storage::Block CpuPool::allocate(int64_t bytes, ThreadCache* cache) {
  if (bytes > kLargestRequest) throw_out_of_memory(bytes);
  int64_t size = rounded_bytes(bytes);
  void* data = nullptr;
  if (size <= kCachedLimit && cache != nullptr) {
    data = take_or_fill(size_class(size), bytes, *cache);
  } else {
    std::vector<std::pair<int64_t, void*>> outgrown;
    {
      const Guard guard(mutex_);
      data = take_pooled(&size);
      if (data == nullptr && size > kClassLimit) outgrown = take_outgrown(size);
    }
    for (const auto& [block_bytes, block] : outgrown) system_free(block, block_bytes);
    if (data == nullptr) data = from_system(size, bytes);
    if (size > kClassLimit) count_huge(size);
    allocations_.fetch_add(1, std::memory_order_relaxed);
    if (cache != nullptr) settle(*cache);  // so that the peak is exact where it matters
    add_in_use(size);
  }
  allow_access(data, size);
  return {.data = data, .bytes = size, .device = {}};
}

void CpuPool::free(const Storage::Block& block, ThreadCache* cache) {
  forbid_free_block(block.data, block.bytes);
  if (block.bytes <= kCachedLimit && cache != nullptr) {
    put_or_flush(size_class(block.bytes), block.data, *cache);
    return;
  }
  add_in_use(-block.bytes);
  put_pooled(block.data, block.bytes);
}

void* CpuPool::take_or_fill(int size_class, int64_t asked, ThreadCache& cache) {
  const int64_t bytes = class_bytes(size_class);
  {
    const ThreadCache::Lock lock(cache);
    if (void* data = cache.take(size_class)) {
      cache.count_allocation(bytes);
      if (cache.in_use() >= kInUseSlack) settle(cache);
      return data;
    }
  }
  // Takes one block for the caller, and more for the next calls if the lists have them.
  std::vector<void*> blocks;
  {
    const Guard guard(mutex_);
    std::vector<void*>& list = free_[size_class];
    const auto count = static_cast<std::ptrdiff_t>(std::min<size_t>(list.size(), 1 + most_cached(size_class) / 2));
    blocks.assign(list.end() - count, list.end());
    list.erase(list.end() - count, list.end());
    pooled_ -= count * bytes;
  }
  if (blocks.empty()) blocks.push_back(from_system(bytes, asked));
  const ThreadCache::Lock lock(cache);
  for (size_t i = 1; i < blocks.size(); ++i) cache.put(size_class, blocks[i]);
  cache.count_allocation(bytes);
  if (cache.in_use() >= kInUseSlack) settle(cache);
  return blocks[0];
}

void CpuPool::put_or_flush(int size_class, void* data, ThreadCache& cache) {
  bool full;
  bool heavy;
  {
    const ThreadCache::Lock lock(cache);
    cache.put(size_class, data);
    cache.count_free(class_bytes(size_class));
    if (cache.in_use() <= -kInUseSlack) settle(cache);
    full = cache.count(size_class) > most_cached(size_class);
    heavy = cache.bytes() > cache_limit_;
  }
  if (heavy) {
    for (int c = 0; c < kCachedClasses; ++c) flush(cache, c, 0);
  } else if (full) {
    flush(cache, size_class, most_cached(size_class) / 2);
  }
}

// Moves blocks from the cache to the lists until `keep` are left.
void CpuPool::flush(ThreadCache& cache, int size_class, int keep) {
  std::array<void*, 32> moved;
  size_t count;
  do {
    count = 0;
    {
      const ThreadCache::Lock lock(cache);
      while (count < moved.size() && cache.count(size_class) > keep) moved[count++] = cache.take(size_class);
    }
    for (size_t i = 0; i < count; ++i) put_pooled(moved[i], class_bytes(size_class));
  } while (count == moved.size());
}

// --- the lists -----------------------------------------------------------------------------------------------------

// Under mutex_. May return a block of the next larger class; *bytes is then its size.
void* CpuPool::take_pooled(int64_t* bytes) {
  if (*bytes > kClassLimit) return take_pooled_huge(bytes);
  const int wanted = size_class(*bytes);
  const int last = *bytes > kCachedLimit ? std::min(wanted + 1, kClasses - 1) : wanted;
  for (int c = wanted; c <= last; ++c) {
    if (free_[c].empty()) continue;
    void* data = free_[c].back();
    free_[c].pop_back();
    *bytes = class_bytes(c);
    pooled_ -= *bytes;
    return data;
  }
  return nullptr;
}

void* CpuPool::take_pooled_huge(int64_t* bytes) {
  const auto found = free_huge_.lower_bound(*bytes);
  if (found == free_huge_.end() || found->first - *bytes > *bytes / 4) return nullptr;
  *bytes = found->first;
  void* data = found->second;
  free_huge_.erase(found);
  pooled_ -= *bytes;
  huge_pooled_ -= *bytes;
  return data;
}

// Under mutex_, before a huge block comes from the system: takes smaller free blocks out of the pool, the largest
// first, until the total with the new block is at most the maximum that was in use at one time. Otherwise a program
// whose arrays grow would keep a block of each size. A block is only dropped for a larger one, so if sizes repeat, all
// of them are in the pool in the end.
std::vector<std::pair<int64_t, void*>> CpuPool::take_outgrown(int64_t bytes) {
  std::vector<std::pair<int64_t, void*>> taken;
  const int64_t most = std::max(huge_needed_, huge_in_use_ + bytes);
  while (huge_in_use_ + bytes + huge_pooled_ > most) {
    auto smaller = free_huge_.lower_bound(bytes);
    if (smaller == free_huge_.begin()) break;
    --smaller;
    taken.push_back(*smaller);
    pooled_ -= smaller->first;
    huge_pooled_ -= smaller->first;
    free_huge_.erase(smaller);
  }
  return taken;
}

void CpuPool::count_huge(int64_t bytes) {
  const Guard guard(mutex_);
  huge_in_use_ += bytes;
  huge_needed_ = std::max(huge_needed_, huge_in_use_);
}

void CpuPool::put_pooled(void* data, int64_t bytes) {
  {
    const Guard guard(mutex_);
    if (bytes > kClassLimit) huge_in_use_ -= bytes;
    if (limit_ < 0 || pooled_ + bytes <= limit_) {
      pooled_ += bytes;
      if (bytes > kClassLimit) {
        huge_pooled_ += bytes;
        free_huge_.emplace(bytes, data);
      } else {
        free_[size_class(bytes)].push_back(data);
      }
      return;
    }
  }
  system_free(data, bytes);
}

void* CpuPool::from_system(int64_t bytes, int64_t asked) {
  void* data = system_allocate(bytes, asked);
  if (data == nullptr) {
    release();
    data = system_allocate(bytes, asked);
  }
  if (data == nullptr) throw_out_of_memory(asked);
  system_allocations_.fetch_add(1, std::memory_order_relaxed);
  return data;
}

void CpuPool::release() {
  std::vector<std::pair<int64_t, void*>> blocks;
  {
    const Guard guard(mutex_);
    for (const auto& cache : caches_) {
      const ThreadCache::Lock lock(*cache);
      for (int c = 0; c < kCachedClasses; ++c) {
        while (void* data = cache->take(c)) blocks.emplace_back(class_bytes(c), data);
      }
    }
    for (int c = 0; c < kClasses; ++c) {
      for (void* data : free_[c]) blocks.emplace_back(class_bytes(c), data);
      std::vector<void*>().swap(free_[c]);
    }
    blocks.insert(blocks.end(), free_huge_.begin(), free_huge_.end());
    free_huge_.clear();
    pooled_ = huge_pooled_ = 0;
  }
  for (const auto& [bytes, data] : blocks) system_free(data, bytes);
  system_trim();
}

// --- caches of threads ---------------------------------------------------------------------------------------------

ThreadCache* CpuPool::add_cache() {
  auto cache = std::make_unique<ThreadCache>();
  const Guard guard(mutex_);
  return caches_.emplace_back(std::move(cache)).get();
}

void CpuPool::retire(ThreadCache* cache) {
  for (int c = 0; c < kCachedClasses; ++c) flush(*cache, c, 0);
  settle(*cache);
  allocations_.fetch_add(cache->allocations(), std::memory_order_relaxed);
  const Guard guard(mutex_);
  std::erase_if(caches_, [cache](const auto& owned) { return owned.get() == cache; });
}

void CpuPool::after_fork(bool in_child, const ThreadCache* own) {
  if (in_child) {
    // Threads other than the forking one do not exist here, and may have been using their caches at the fork. The
    // blocks in these caches are leaked; their counts are kept.
    for (std::unique_ptr<ThreadCache>& cache : caches_) {
      if (cache.get() == own) continue;
      settle(*cache);
      allocations_.fetch_add(cache->allocations(), std::memory_order_relaxed);
      cache.release();
    }
    std::erase(caches_, nullptr);
  }
  mutex_.unlock();
}

// --- statistics ----------------------------------------------------------------------------------------------------

void CpuPool::add_in_use(int64_t bytes) {
  const int64_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void CpuPool::settle(ThreadCache& cache) { add_in_use(cache.take_in_use()); }

Storage::Statistics CpuPool::statistics() {
  Storage::Statistics s;
  const Guard guard(mutex_);
  s.in_use = in_use_.load(std::memory_order_relaxed);
  s.pooled = pooled_;
  s.allocations = allocations_.load(std::memory_order_relaxed);
  s.system_allocations = system_allocations_.load(std::memory_order_relaxed);
  for (const auto& cache : caches_) {
    s.in_use += cache->in_use();
    s.pooled += cache->bytes();
    s.allocations += cache->allocations();
  }
  s.peak_in_use = std::max(peak_.load(std::memory_order_relaxed), s.in_use);
  return s;
}

void CpuPool::reset_peak() { peak_.store(statistics().in_use, std::memory_order_relaxed); }

void CpuPool::throw_out_of_memory(int64_t bytes) {
  const Storage::Statistics s = statistics();
  auto megabytes = [](int64_t n) { return std::to_string(n >> 20) + " MiB"; };
  throw OutOfMemoryError(
      {.message = "cannot allocate " + std::to_string(bytes) + " bytes (" + megabytes(bytes) + ") on " + Device{}.str(),
       .because = megabytes(s.in_use) + " are in use, at most " + megabytes(s.peak_in_use) +
                  " were, and the system has no more to give",
       .fix = "use smaller batches or arrays, or free arrays that are no longer needed"});
}

}  // namespace hybridnet
