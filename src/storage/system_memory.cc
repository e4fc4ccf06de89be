#include "storage/system_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
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
constexpr int64_t kUsedPerUnused = 32;
constexpr intptr_t kPage = 4096;

int64_t rounded_to_pages(int64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// The number of bytes to put into huge pages. The last huge page would hold memory beyond `used`: it is made huge only
// if that is little.
int64_t bytes_in_huge_pages(int64_t used) {
  const int64_t beyond = -used & (kHugePage - 1);
  return beyond <= used / kUsedPerUnused ? used + beyond : used + beyond - kHugePage;
}

// Maps memory aligned to huge pages: maps more and unmaps both ends.
void* map_aligned(int64_t bytes, int64_t used) {
  bytes = rounded_to_pages(bytes);
  const int64_t mapped = bytes + kHugePage;
  void* const start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(start);
  const int64_t before = -reinterpret_cast<intptr_t>(start) & (kHugePage - 1);
  if (before > 0) munmap(first, before);
  if (before < kHugePage) munmap(first + before + bytes, kHugePage - before);
  char* const data = first + before;
  const int64_t huge = std::min(bytes_in_huge_pages(used), bytes);
  madvise(data, huge, MADV_HUGEPAGE);  // a hint; without huge pages everything works, but slower
  if (huge < bytes) madvise(data + huge, bytes - huge, MADV_NOHUGEPAGE);
  return data;
}

}  // namespace

void* system_allocate(int64_t bytes, int64_t used) {
  if (bytes >= kMappedFrom) return map_aligned(bytes, used);
  return std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

void system_free(void* data, int64_t bytes) {
  allow_access(data, bytes);
  if (bytes >= kMappedFrom) {
    munmap(data, rounded_to_pages(bytes));
  } else {
    std::free(data);
  }
}

void zero_and_release(void* data, int64_t bytes) {
  const Pages whole = whole_pages(data, bytes);
  // Private pages without a file read as zeros afterwards.
  if (whole.bytes == 0 || madvise(whole.data, static_cast<size_t>(whole.bytes), MADV_DONTNEED) != 0) {
    std::memset(data, 0, static_cast<size_t>(bytes));
    return;
  }
  char* const begin = static_cast<char*>(data);
  char* const first = static_cast<char*>(whole.data);
  char* const last = first + whole.bytes;
  std::memset(begin, 0, static_cast<size_t>(first - begin));
  std::memset(last, 0, static_cast<size_t>(begin + bytes - last));
}

Pages whole_pages(void* data, int64_t bytes) {
  char* const begin = static_cast<char*>(data);
  char* const end = begin + bytes;
  char* const first = begin + (-reinterpret_cast<intptr_t>(begin) & (kPage - 1));
  char* const last = end - (reinterpret_cast<intptr_t>(end) & (kPage - 1));
  if (first >= last) return {};
  return {first, last - first};
}

void drop_pages(void* data, int64_t bytes) { madvise(data, static_cast<size_t>(bytes), MADV_DONTNEED); }

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
