#include "storage/system_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "storage/size_class.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace hybridnet {
namespace {

constexpr int64_t kMappedFrom = int64_t{4} << 20;
constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t whole_pages(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

// Aligned to huge pages: maps more and unmaps both ends.
void* map_aligned(int64_t bytes) {
  bytes = whole_pages(bytes);
  const int64_t mapped = bytes + kHugePage;
  void* const start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(start);
  const int64_t before = -reinterpret_cast<intptr_t>(start) & (kHugePage - 1);
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + bytes, kHugePage - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);  // a hint; without huge pages everything works, but slower
  return first + before;
}

}  // namespace

void* system_allocate(int64_t bytes) {
  if (bytes >= kMappedFrom) return map_aligned(bytes);
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

void system_free(void* data, int64_t bytes) {
  allow_access(data, bytes);
  if (bytes >= kMappedFrom) {
    munmap(data, whole_pages(bytes));
  } else {
    std::free(data);
  }
}

void zero_and_release(void* data, int64_t bytes) {
  constexpr intptr_t kPage = 4096;
  char* const begin = static_cast<char*>(data);
  char* const end = begin + bytes;
  char* const first = begin + (-reinterpret_cast<intptr_t>(begin) & (kPage - 1));
  char* const last = end - (reinterpret_cast<intptr_t>(end) & (kPage - 1));
  // Private pages of no file read as zeros afterwards.
  if (first >= last || madvise(first, static_cast<size_t>(last - first), MADV_DONTNEED) != 0) {
    std::memset(data, 0, static_cast<size_t>(bytes));
    return;
  }
  std::memset(begin, 0, static_cast<size_t>(first - begin));
  std::memset(last, 0, static_cast<size_t>(end - last));
}

void system_trim() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

void forbid_access([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(data, bytes);
#endif
}

void allow_access([[maybe_unused]] void* data, [[maybe_unused]] int64_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace hybridnet
