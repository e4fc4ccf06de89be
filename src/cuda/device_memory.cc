#include "cuda/device_memory.h"

namespace hybridnet::cuda {
namespace {

bool has_pool(const Driver& driver, DeviceNumber device) {
  int value = 0;
  if (!driver.allocate_ordered || !driver.free_ordered) return false;
  call(driver.device_attribute, &value, kAttributeMemoryPools, device);
  return value != 0;
}

template <class... Parameters, class... Arguments>
Outcome attempt(const Function<Result(Parameters...)>& function, Arguments... arguments) {
  return {function(arguments...), function.name};
}

}  // namespace

DeviceMemory::DeviceMemory(const Driver& driver, DeviceNumber device)
    : driver_(driver), has_pool_(has_pool(driver, device)) {}

// The pool may give memory that another user has freed in the order of its stream, before the work in front of the free
// was done: then the allocation waits for that work, and the wait below makes it so for all our streams.
Outcome DeviceMemory::allocate(Pointer* memory, size_t bytes) {
  if (!has_pool_) return attempt(driver_.allocate, memory, bytes);
  if (const Outcome made = prepare_stream(); made.failed()) return made;
  StreamHandle const stream = stream_.load(std::memory_order_acquire);
  if (const Outcome given = attempt(driver_.allocate_ordered, memory, bytes, stream); given.failed()) return given;
  const Outcome waited = attempt(driver_.stream_synchronize, stream);
  if (waited.failed()) {
    note_handled(waited.result);
    note_handled(driver_.free_ordered(*memory, stream));  // the failed wait is the one to report
  }
  return waited;
}

// The wait lets the pool give back what it does not keep, so that other processes and free_and_total_bytes() see it. If
// it fails the memory has been freed nevertheless.
Outcome DeviceMemory::free(Pointer memory) {
  if (!has_pool_) return attempt(driver_.free, memory);
  StreamHandle const stream = stream_.load(std::memory_order_acquire);
  const Outcome freed = attempt(driver_.free_ordered, memory, stream);
  if (!freed.failed()) note_handled(driver_.stream_synchronize(stream));
  return freed;
}

Outcome DeviceMemory::prepare_stream() {
  const std::lock_guard lock(making_);
  if (stream_.load(std::memory_order_relaxed)) return {};
  StreamHandle made = nullptr;
  const Outcome outcome = attempt(driver_.stream_create, &made, kStreamNonBlocking);
  if (!outcome.failed()) stream_.store(made, std::memory_order_release);
  return outcome;
}

void DeviceMemory::release() noexcept {
  if (StreamHandle const stream = stream_.exchange(nullptr)) note_handled(driver_.stream_destroy(stream));
}

}  // namespace hybridnet::cuda
