#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "recording.h"
#include "reports.h"

namespace standin {
namespace {

constexpr int64_t kPage = 4096, kHugePage = int64_t{2} << 20, kAlignment = 256;

int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }
uintptr_t round_up(uintptr_t n, int64_t step) {
  return (n + static_cast<uintptr_t>(step) - 1) / static_cast<uintptr_t>(step) * static_cast<uintptr_t>(step);
}

// Large allocations have huge pages: changing the protection of a small page takes as long as that of a huge one.
int64_t page_of(int64_t bytes) { return bytes >= kHugePage ? kHugePage : kPage; }

struct Range {
  uintptr_t begin = 0, end = 0, next = 0;
};

// Twice the memory, so that freed addresses are not used again soon.
Range& range() {
  static Range& it = *new Range;
  if (it.begin == 0) {
    const size_t bytes = static_cast<size_t>(device_bytes()) * 2 * world().contexts.size() + (size_t{64} << 20);
    // Recorded launches are repeated at the same addresses, in a process that has nothing there.
    void* const wanted = is_recording() ? reinterpret_cast<void*>(uintptr_t{1} << 45) : nullptr;
    void* at = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return it;
    madvise(at, bytes, MADV_HUGEPAGE);
    it.begin = it.next = reinterpret_cast<uintptr_t>(at);
    it.end = it.begin + bytes;
  }
  return it;
}

std::vector<Allocation*>& opened() {
  static auto& it = *new std::vector<Allocation*>;
  return it;
}

// The first gap of `bytes` at or after `from` with guard pages around it; 0 if there is none.
uintptr_t gap_from(World& w, uintptr_t from, int64_t bytes, int64_t page) {
  const auto end_of = [page](const Allocation& allocation) {
    return round_up(allocation.pages + static_cast<uintptr_t>(allocation.page_bytes + kPage), page);
  };
  const uintptr_t needed = static_cast<uintptr_t>(bytes + kPage);
  uintptr_t at = round_up(from, page);
  auto next = w.allocations.lower_bound(from);
  if (next != w.allocations.begin()) at = std::max(at, end_of(std::prev(next)->second));
  for (; next != w.allocations.end(); ++next) {
    if (at + needed <= next->second.pages) return at;
    at = end_of(next->second);
  }
  return at + needed <= range().end ? at : 0;
}

uintptr_t find_gap(World& w, int64_t bytes, int64_t page) {
  const Range& all = range();
  if (all.begin == 0) return 0;
  const uintptr_t at = gap_from(w, all.next, bytes, page);
  return at != 0 ? at : gap_from(w, all.begin + kPage, bytes, page);
}

void protect(const Allocation& allocation, int protection) {
  mprotect(reinterpret_cast<void*>(allocation.pages), static_cast<size_t>(allocation.page_bytes), protection);
}

bool overlap(const Access& access, int64_t begin, int64_t end) { return access.begin < end && begin < access.end; }

std::string said(const char* verb, const std::string& name, int stream, uint64_t ticket) {
  return "'" + name + "' (stream " + std::to_string(stream) + ", ticket " + std::to_string(ticket) + ") " + verb;
}

bool all_done(const World& w, const Clock& clock) {
  for (const auto& stream : w.streams)
    if (stream->done < at(clock, static_cast<size_t>(stream->number))) return false;
  return true;
}

}  // namespace

int64_t device_bytes() {
  static const int64_t bytes = std::max<int64_t>(1, setting("HNSTANDIN_MEMORY_MB", 2048)) << 20;
  return bytes;
}

bool in_device_range(uintptr_t address) {
  const Range& all = range();
  return address >= all.begin && address < all.end;
}

Allocation* find(World& w, uintptr_t address) {
  auto after = w.allocations.upper_bound(address);
  if (after == w.allocations.begin()) return nullptr;
  Allocation& allocation = std::prev(after)->second;
  return address < allocation.pages + static_cast<uintptr_t>(allocation.page_bytes) ? &allocation : nullptr;
}

int64_t used_bytes(const World& w, int device) { return w.contexts[static_cast<size_t>(device)]->used_bytes; }

Allocation* allocate(World& w, int64_t bytes, int device) {
  const int64_t page = page_of(bytes), page_bytes = round_up(bytes, page);
  collect_released(w);
  if (used_bytes(w, device) + round_up(bytes, kPage) > device_bytes()) return nullptr;
  const uintptr_t pages = find_gap(w, page_bytes, page);
  if (pages == 0) return nullptr;
  range().next = pages + static_cast<uintptr_t>(page_bytes);
  Allocation& made = w.allocations[pages];
  made.pages = pages;
  made.page_bytes = page_bytes;
  made.bytes = bytes;
  // At the end of its pages, so that a step beyond the end (rounded up to the alignment) meets the guard page.
  made.address = pages + static_cast<uintptr_t>(page_bytes - round_up(bytes, kAlignment));
  made.device = device;
  static uint64_t number = 0;
  made.number = ++number;
  protect(made, PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(pages), kPoison, static_cast<size_t>(page_bytes));
  protect(made, PROT_NONE);
  w.contexts[static_cast<size_t>(device)]->used_bytes += round_up(bytes, kPage);
  ++w.counters.allocations;
  ++w.counters.live_allocations;
  w.counters.live_bytes += bytes;
  return &made;
}

void release(World& w, Allocation& allocation, const std::string& by) {
  allocation.freed_by = by;
  w.contexts[static_cast<size_t>(allocation.device)]->used_bytes -= round_up(allocation.bytes, kPage);
  --w.counters.live_allocations;
  w.counters.live_bytes -= allocation.bytes;
  for (const auto& stream : w.streams) join(allocation.gone_after, stream->clock);
  w.released.push_back(&allocation);
}

void collect_released(World& w) {
  std::erase_if(w.released, [&w](Allocation* allocation) {
    if (allocation->opened != Opened::kNo || !all_done(w, allocation->gone_after)) return false;
    madvise(reinterpret_cast<void*>(allocation->pages), static_cast<size_t>(allocation->page_bytes), MADV_DONTNEED);
    w.allocations.erase(allocation->pages);
    return true;
  });
}

void access(Allocation& allocation, const Work& work, int64_t begin, int64_t end, bool write,
            const std::function<void(unsigned char*)>& body) {
  protect(allocation, write ? PROT_READ | PROT_WRITE : PROT_READ);
  body(reinterpret_cast<unsigned char*>(allocation.address));
  protect(allocation, PROT_NONE);
  note_access(allocation, work, begin, end, write);
}

void peek(const Allocation& allocation, const std::function<void(const unsigned char*)>& body) {
  protect(allocation, PROT_READ);
  body(reinterpret_cast<const unsigned char*>(allocation.address));
  protect(allocation, PROT_NONE);
}

void open(Allocation& allocation, Opened how) {
  if (allocation.opened >= how) return;
  if (allocation.opened == Opened::kNo) opened().push_back(&allocation);
  allocation.opened = how;
  protect(allocation, how == Opened::kWrite ? PROT_READ | PROT_WRITE : PROT_READ);
}

void close_opened(const Work& work) {
  std::vector<Allocation*> all;
  all.swap(opened());
  for (Allocation* allocation : all) {
    const bool write = allocation->opened == Opened::kWrite;
    protect(*allocation, PROT_NONE);
    allocation->opened = Opened::kNo;
    note_access(*allocation, work, 0, allocation->bytes, write);
  }
}

void note_access(Allocation& allocation, const Work& work, int64_t begin, int64_t end, bool write) {
  const int stream = work.stream;
  if (!allocation.freed_by.empty())
    report("early free: " + said(write ? "writes " : "reads ", work.name, stream, work.ticket) + describe(allocation) +
           " after " + allocation.freed_by);
  std::vector<Access> kept;
  for (Access& old : allocation.accesses) {
    const bool before = old.stream == stream || at(work.clock, static_cast<size_t>(old.stream)) >= old.ticket;
    if (!before && (write || old.write) && overlap(old, begin, end))
      report("race: " + said(write ? "writes " : "reads ", work.name, stream, work.ticket) + describe(allocation) +
             ", " + said(old.write ? "writes" : "reads", old.name, old.stream, old.ticket) +
             " it, and no event or wait orders them");
    // Work that is ordered after a kept access of the same bytes is ordered after this one.
    const bool covered = before && begin <= old.begin && end >= old.end && (write || !old.write);
    if (!covered) kept.push_back(std::move(old));
  }
  kept.push_back({stream, work.ticket, begin, end, write, work.name});
  constexpr size_t kMost = 256;
  if (kept.size() > kMost) kept.erase(kept.begin());
  allocation.accesses = std::move(kept);
}

}  // namespace standin
