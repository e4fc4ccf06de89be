#include "ndarray/overlap.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace hybridnet {
namespace {

// Bytes [begin, end) of `memory`; for foreign memory, addresses with `memory` null.
struct Range {
  const void* memory = nullptr;
  uint64_t begin = 0, end = 0;
};

Range range_of(const NDArray& array) {
  const ArrayImpl& impl = *array.impl();
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  if (impl.sparse) return {impl.sparse.get(), 0, 1};
  const Chunk& chunk = impl.chunk->owner();
  if (array.is_pending()) return {&chunk, 0, kAll};
  const auto bytes = static_cast<uint64_t>(impl.spec.bytes());
  const auto offset = static_cast<uint64_t>(impl.offset);
  if (!chunk.is_foreign()) return {&chunk, offset, offset + bytes};
  const uint64_t begin = reinterpret_cast<uintptr_t>(chunk.block.data) + offset;
  return {nullptr, begin, begin + bytes};
}

bool meet(const Range& a, const Range& b) {
  return a.memory == b.memory && a.begin < b.end && b.begin < a.end && a.begin < a.end && b.begin < b.end;
}

}  // namespace

bool ranges_overlap(const NDArray& a, const NDArray& b) { return meet(range_of(a), range_of(b)); }

bool is_same_place(const NDArray& a, const NDArray& b) {
  const Range first = range_of(a), second = range_of(b);
  return first.memory == second.memory && first.begin == second.begin && first.end == second.end;
}

namespace {

// True if each array has a chunk of its own, whose memory no other chunk shares. False if that is unknown: then the
// ranges must be compared.
bool stand_alone(std::span<const NDArray> arrays) {
  std::vector<const Chunk*> seen(std::bit_ceil(2 * arrays.size()));
  for (const NDArray& array : arrays) {
    if (!array) continue;
    const Chunk* chunk = array.impl()->chunk.get();
    if (array.impl()->sparse || chunk->original || chunk->is_foreign()) return false;
    size_t at = chunk->id * 0x9E3779B97F4A7C15u & (seen.size() - 1);
    for (; seen[at] != nullptr; at = (at + 1) & (seen.size() - 1))
      if (seen[at] == chunk) return false;
    seen[at] = chunk;
  }
  return true;
}

}  // namespace

bool any_overlap(std::span<const NDArray> arrays) {
  if (stand_alone(arrays)) return false;
  std::vector<Range> ranges;
  ranges.reserve(arrays.size());
  for (const NDArray& array : arrays)
    if (array) ranges.push_back(range_of(array));
  std::erase_if(ranges, [](const Range& range) { return range.begin == range.end; });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.memory != b.memory ? std::less<const void*>()(a.memory, b.memory) : a.begin < b.begin;
  });
  return std::adjacent_find(ranges.begin(), ranges.end(), meet) != ranges.end();
}

}  // namespace hybridnet
