// The driver's functions for memory of devices and pinned memory of the host.
#include <cstdlib>
#include <cstring>

#include "driver.h"
#include "memory.h"
#include "schedule.h"

namespace standin {

Allocation* allocation_of(World& w, uint64_t address, size_t bytes, const char* function) {
  Allocation* allocation = find(w, address);
  const std::string what = std::string(function) + ": " + std::to_string(bytes) + " bytes at " + hex(address);
  if (!allocation) {
    report("bad address: " + what + " belong to no allocation");
    return nullptr;
  }
  if (!allocation->freed_by.empty()) {
    report("use after free: " + what + " of " + describe(*allocation) + ", freed by " + allocation->freed_by);
    return nullptr;
  }
  const uint64_t end = allocation->address + static_cast<uint64_t>(allocation->bytes);
  if (address >= allocation->address && address <= end && bytes <= end - address) return allocation;
  report("bad address: " + what + " are not inside of " + describe(*allocation));
  return nullptr;
}

namespace {

// The allocation that begins at a freed address.
Allocation* freed_allocation(World& w, uint64_t address, const char* function) {
  Allocation* allocation = find(w, address);
  if (allocation && allocation->address == address && allocation->freed_by.empty() && !allocation->free_queued)
    return allocation;
  if (allocation && (!allocation->freed_by.empty() || allocation->free_queued))
    report(std::string("double free: ") + function + " of " + describe(*allocation) + ", freed before by " +
           (allocation->free_queued ? "cuMemFreeAsync" : allocation->freed_by));
  else
    report(std::string("double free: ") + function + " of " + hex(address) + ", where no allocation begins");
  return nullptr;
}

void check_unfinished(const World& w, const Allocation& allocation, const char* function) {
  for (const Access& access : allocation.accesses)
    if (at(w.known, static_cast<size_t>(access.stream)) < access.ticket)
      report(std::string("early free: ") + function + " of " + describe(allocation) + ", and no thread waited for '" +
             access.name + "' (stream " + std::to_string(access.stream) + ", ticket " + std::to_string(access.ticket) +
             "), which uses it");
}

Result new_memory(World& w, uint64_t* memory, size_t bytes, Allocation** made) {
  if (!memory || bytes == 0) return kInvalidValue;
  if (!t_context) return kInvalidContext;
  if (bytes > static_cast<size_t>(device_bytes())) return kOutOfMemory;
  *made = allocate(w, static_cast<int64_t>(bytes), t_context->device);
  if (!*made) return kOutOfMemory;
  *memory = (*made)->address;
  return kSuccess;
}

}  // namespace
}  // namespace standin

using namespace standin;

extern "C" {

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  return call(__func__, [&](World& w) {
    if (!t_context) return kInvalidContext;
    *total = static_cast<size_t>(device_bytes());
    *free = static_cast<size_t>(device_bytes() - used_bytes(w, t_context->device));
    return kSuccess;
  });
}

int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  return call(__func__, [&](World& w) {
    for (const auto& stream : w.streams)
      if (stream->capture && stream->context == t_context) return refuse_in_capture(*stream, "cuMemAlloc");
    Allocation* made = nullptr;
    return new_memory(w, memory, bytes, &made);
  });
}

int cuMemFree_v2(uint64_t memory) {
  return call(__func__, [&](World& w) {
    if (memory == 0) return kSuccess;
    Allocation* allocation = freed_allocation(w, memory, "cuMemFree");
    if (!allocation) return kInvalidValue;
    check_unfinished(w, *allocation, "cuMemFree");
    release(w, *allocation, "cuMemFree");
    collect_released(w);
    return kSuccess;
  });
}

// Work of other streams must come after the allocation: it counts as a write by the stream.
int cuMemAllocAsync(uint64_t* memory, size_t bytes, void* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuMemAllocAsync", &result);
    if (!stream) return result;
    if (stream->capture) return refuse_in_capture(*stream, "cuMemAllocAsync");
    Allocation* made = nullptr;
    if (result = new_memory(w, memory, bytes, &made); result != kSuccess) return result;
    Work work;
    work.name = "cuMemAllocAsync";
    work.run = [&w, made](const Work& self) {
      note_access(*made, self, 0, made->bytes, true);
      return kSuccess;
    };
    push(w, *stream, std::move(work));
    return kSuccess;
  });
}

int cuMemFreeAsync(uint64_t memory, void* handle) {
  return call(__func__, [&](World& w) {
    Result result = kSuccess;
    Stream* stream = stream_of(w, handle, "cuMemFreeAsync", &result);
    if (!stream) return result;
    if (stream->capture) return refuse_in_capture(*stream, "cuMemFreeAsync");
    Allocation* allocation = freed_allocation(w, memory, "cuMemFreeAsync");
    if (!allocation) return kInvalidValue;
    allocation->free_queued = true;
    Work work;
    work.name = "cuMemFreeAsync";
    work.run = [&w, allocation](const Work& self) {
      note_access(*allocation, self, 0, allocation->bytes, true);
      release(w, *allocation, "cuMemFreeAsync");
      return kSuccess;
    };
    push(w, *stream, std::move(work));
    return kSuccess;
  });
}

int cuDeviceGetDefaultMemPool(void** pool, int device) {
  return call(__func__, [&](World& w) {
    if (device < 0 || static_cast<size_t>(device) >= w.contexts.size()) return kInvalidDevice;
    *pool = w.contexts[static_cast<size_t>(device)].get();
    return kSuccess;
  });
}

int cuMemPoolSetAttribute(void* pool, int, void* value) {
  return call(__func__, [&](World&) { return pool && value ? kSuccess : kInvalidValue; });
}

int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return call(__func__, [&](World& w) {
    if (!memory || bytes == 0) return kInvalidValue;
    void* made = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!made) return kOutOfMemory;
    std::memset(made, kPoison, bytes);
    w.pinned[reinterpret_cast<uintptr_t>(made)].bytes = static_cast<int64_t>(bytes);
    *memory = made;
    return kSuccess;
  });
}

int cuMemFreeHost(void* memory) {
  return call(__func__, [&](World& w) {
    const auto found = w.pinned.find(reinterpret_cast<uintptr_t>(memory));
    if (found == w.pinned.end()) {
      report("double free: cuMemFreeHost of " + hex(reinterpret_cast<uintptr_t>(memory)) +
             ", which is not pinned memory");
      return kInvalidValue;
    }
    const Clock used = found->second.used;
    for (size_t i = 0; i < used.size(); ++i) {
      if (at(w.known, i) < used[i])
        report("early free: cuMemFreeHost, and no thread waited for a copy of stream " + std::to_string(i) +
               ", ticket " + std::to_string(used[i]) + ", which uses it");
      run_until(w, *w.streams[i], used[i]);
    }
    w.pinned.erase(found);
    std::free(memory);
    return kSuccess;
  });
}

int cuPointerGetAttribute(void* value, int number, uint64_t memory) {
  return call(__func__, [&](World& w) {
    const Allocation* allocation = find(w, memory);
    if (!allocation || !allocation->freed_by.empty() || number != 9) return kInvalidValue;
    *static_cast<int*>(value) = allocation->device;
    return kSuccess;
  });
}

}  // extern "C"
