// The driver's copies and fills. Pinned host memory is read and written when the copy runs; other host memory is read
// at the call, and written before the call returns. In a graph, all host memory is used when the graph runs.
#include <cstring>
#include <memory>

#include "driver.h"
#include "memory.h"
#include "schedule.h"

using namespace standin;

namespace {

PinnedMemory* pinned(World& w, const void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto after = w.pinned.upper_bound(address);
  if (after == w.pinned.begin()) return nullptr;
  auto& [begin, block] = *std::prev(after);
  return address < begin + static_cast<uintptr_t>(block.bytes) ? &block : nullptr;
}

void use(PinnedMemory& block, const Stream& stream, uint64_t ticket) {
  const auto number = static_cast<size_t>(stream.number);
  if (block.used.size() <= number) block.used.resize(number + 1, 0);
  block.used[number] = std::max(block.used[number], ticket);
}

// Bytes of device memory, found again when the work runs: a graph may hold addresses that are gone.
struct Place {
  uint64_t address;
  size_t bytes;
};

template <class Body>
Result access_place(World& w, const Place& place, const Work& work, bool write, Body body) {
  Allocation* allocation = find(w, place.address);
  if (!allocation || place.address < allocation->address) {
    report("stale pointer: '" + work.name + "' uses " + hex(place.address) + ", which belongs to no allocation");
    return kIllegalAddress;
  }
  const auto begin = static_cast<int64_t>(place.address - allocation->address);
  access(*allocation, work, begin, begin + static_cast<int64_t>(place.bytes), write,
         [&](unsigned char* data) { body(data + begin); });
  return kSuccess;
}

Result read_place(World& w, const Place& from, const Work& work, void* to) {
  return access_place(w, from, work, false, [&](const unsigned char* data) { std::memcpy(to, data, from.bytes); });
}

Result write_place(World& w, const Place& to, const Work& work, const void* from) {
  return access_place(w, to, work, true, [&](unsigned char* data) { std::memcpy(data, from, to.bytes); });
}

// Queues a function of the work itself.
template <class Body>
uint64_t push_copy(World& w, Stream& stream, const char* function, Body body) {
  Work work;
  work.name = function;
  work.run = body;
  return push(w, stream, std::move(work));
}

Result copy_on_device(World& w, uint64_t to, uint64_t from, size_t bytes, void* handle, const char* function) {
  Result result = kSuccess;
  Stream* stream = stream_of(w, handle, function, &result);
  if (!stream || bytes == 0) return result;
  if (!allocation_of(w, from, bytes, function) || !allocation_of(w, to, bytes, function)) return kInvalidValue;
  const Place source{from, bytes}, target{to, bytes};
  push_copy(w, *stream, function, [&w, source, target](const Work& self) {
    const auto staged = std::make_unique<char[]>(source.bytes);
    const Result read = read_place(w, source, self, staged.get());
    return read != kSuccess ? read : write_place(w, target, self, staged.get());
  });
  return kSuccess;
}

// Null: the host memory is read when the copy runs, and must not be written before.
using Staged = std::shared_ptr<const std::vector<char>>;

Staged stage(const void* from, size_t bytes) {
  const auto* begin = static_cast<const char*>(from);
  return std::make_shared<const std::vector<char>>(begin, begin + bytes);
}

void check_unchanged(const Staged& staged, const void* host, const Work& work, const char* had_used_it) {
  if (std::memcmp(host, staged->data(), staged->size()) != 0)
    report("race: the host wrote pinned memory before '" + work.name + "' (stream " + std::to_string(work.stream) +
           ", ticket " + std::to_string(work.ticket) + ") had " + had_used_it);
}

bool is_idle(const World& w, const PinnedMemory& block) {
  for (size_t i = 0; i < block.used.size(); ++i)
    if (w.streams[i]->done < block.used[i]) return false;
  return true;
}

// Nothing is known of memory that a later copy writes: a host that reads it at once gets NaN. Null: earlier copies
// still use the block.
Staged poison_until_written(const World& w, const PinnedMemory& block, void* to, size_t bytes) {
  if (!is_idle(w, block)) return nullptr;
  std::memset(to, kPoison, bytes);
  return stage(to, bytes);
}

}  // namespace

extern "C" {

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuMemcpyHtoDAsync", &result);
    if (!stream || bytes == 0) return result;
    if (!allocation_of(w, to, bytes, "cuMemcpyHtoDAsync")) return kInvalidValue;
    PinnedMemory* block = pinned(w, from);
    const Staged staged = stream->capture ? nullptr : stage(from, bytes);
    const bool late = block || !staged;
    const Place target{to, bytes};
    const auto run = [&w, target, staged, from, late](const Work& self) {
      if (late && staged) check_unchanged(staged, from, self, "read it");
      w.counters.bytes_in += static_cast<int64_t>(target.bytes);
      return write_place(w, target, self, late ? from : staged->data());
    };
    const uint64_t ticket = push_copy(w, *stream, "cuMemcpyHtoDAsync", run);
    if (block) use(*block, *stream, ticket);
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuMemcpyDtoHAsync", &result);
    if (!stream || bytes == 0) return result;
    if (!allocation_of(w, from, bytes, "cuMemcpyDtoHAsync")) return kInvalidValue;
    const Place source{from, bytes};
    PinnedMemory* block = pinned(w, to);
    const Staged before = block && !stream->capture ? poison_until_written(w, *block, to, bytes) : nullptr;
    const auto run = [&w, source, to, before](const Work& self) {
      if (before) check_unchanged(before, to, self, "written it");
      w.counters.bytes_out += static_cast<int64_t>(source.bytes);
      return read_place(w, source, self, to);
    };
    const uint64_t ticket = push_copy(w, *stream, "cuMemcpyDtoHAsync", run);
    if (block) use(*block, *stream, ticket);
    return block || stream->capture ? kSuccess : synchronize(w, *stream);
  });
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) { return copy_on_device(w, to, from, bytes, handle, "cuMemcpyDtoDAsync"); });
}

int cuMemcpyPeerAsync(uint64_t to, Context*, uint64_t from, Context*, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) { return copy_on_device(w, to, from, bytes, handle, "cuMemcpyPeerAsync"); });
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuMemsetD8Async", &result);
    if (!stream || bytes == 0) return result;
    if (!allocation_of(w, to, bytes, "cuMemsetD8Async")) return kInvalidValue;
    const Place target{to, bytes};
    push_copy(w, *stream, "cuMemsetD8Async", [&w, target, value](const Work& self) {
      return access_place(w, target, self, true, [&](unsigned char* data) { std::memset(data, value, target.bytes); });
    });
    return kSuccess;
  });
}

}  // extern "C"
