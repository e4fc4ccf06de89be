#include "device/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "device/block_pool.h"
#include "device/launch_batch.h"
#include "device/outside.h"
#include "device/pinned.h"
#include "device/stream.h"
#include "hybridnet/error.h"
#include "storage/size_class.h"

namespace hybridnet::device {
namespace {

constexpr int64_t kLeastBytes = 512;  // alignment of the drivers' memory

class DevicePool final : public BlockPool {
 public:
  explicit DevicePool(Device device) : device_(device) {}

  Block allocate(int64_t bytes) override;
  void free(Block block) override;

 private:
  Block taken(int64_t bytes);
  Block new_block(int64_t bytes) override;
  void give_back(void* data) override;
  [[noreturn]] void out_of_memory(int64_t bytes) const;

  const Device device_;
};

Storage::Block DevicePool::allocate(int64_t bytes) {
  if (bytes <= 0) {
    if (bytes < 0) throw ValueError({.expected = "a size of 0 or more bytes", .given = std::to_string(bytes)});
    return {.data = nullptr, .bytes = 0, .device = device_};
  }
  const int64_t rounded = rounded_bytes(std::max(bytes, kLeastBytes));
  Stream* const stream = current();
  if (LaunchBatch* const batch = LaunchBatch::current(); batch != nullptr && stream->device() == device_)
    if (const Block kept = batch->take(rounded); kept.data != nullptr) return kept;
  const Block block = taken(rounded);
  if (stream == nullptr || !(stream->device() == device_)) return block;
  // Temporary memory of a kernel: the kernel uses it from now on until it is freed.
  StreamUse* const uses[] = {block.use};
  try {
    stream->begin({}, uses);
  } catch (...) {
    free(block);
    throw;
  }
  block.use->temporary_of = stream;
  return block;
}

// Memory that the batch of this thread keeps is the last resort.
Storage::Block DevicePool::taken(int64_t bytes) {
  try {
    return take(bytes);
  } catch (const OutOfMemoryError&) {
    LaunchBatch* const batch = LaunchBatch::current();
    if (batch == nullptr || !batch->give_back()) throw;
    return take(bytes);
  }
}

Storage::Block DevicePool::new_block(int64_t bytes) {
  Backend& driver = *backend();
  driver.make_current(device_.id);
  void* data = driver.allocate(bytes);
  if (data == nullptr && counts().pooled > 0) {
    give_all_back();
    driver.make_current(device_.id);
    data = driver.allocate(bytes);
  }
  if (data == nullptr) out_of_memory(bytes);
  return {.data = data, .bytes = bytes, .device = device_, .use = new StreamUse};
}

void DevicePool::give_back(void* data) { backend()->free(data); }

void DevicePool::free(Block block) {
  if (block.data == nullptr) return;
  if (LaunchBatch* const batch = LaunchBatch::current(); batch != nullptr && block.use->temporary_of == current())
    return batch->keep(block);
  if (Stream* const stream = std::exchange(block.use->temporary_of, nullptr)) {
    StreamUse* const uses[] = {block.use};
    stream->end({}, uses);
  }
  end_use_outside(*block.use, device_);
  keep(block);
}

void DevicePool::out_of_memory(int64_t bytes) const {
  const auto [free, total] = backend()->free_and_total_bytes(device_.id);
  throw OutOfMemoryError(
      {.message = device_.str() + " has no " + std::to_string(bytes) + " bytes left: " + std::to_string(free) + " of " +
                  std::to_string(total) + " bytes are free, " + std::to_string(counts().in_use) +
                  " are in use by arrays of this process (at most " + std::to_string(counts().peak_in_use) + ")",
       .fix = "use smaller batches, delete arrays, or give memory of other processes on the device free"});
}

std::array<std::atomic<DevicePool*>, kMaxDevices> g_pools{};
std::mutex g_making;

template <class Action>
void for_each_pool(Action action) {
  for (const std::atomic<DevicePool*>& pool : g_pools)
    if (DevicePool* const made = pool.load(std::memory_order_acquire)) action(*made);
}

}  // namespace

Storage& storage_of(Device device) {
  Stream::of(device);  // throws if there is no such device
  std::atomic<DevicePool*>& place = g_pools[static_cast<size_t>(device.id)];
  if (DevicePool* const known = place.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(g_making);
  if (place.load(std::memory_order_relaxed) == nullptr)
    place.store(new DevicePool({DeviceType::kGPU, device.id}), std::memory_order_release);
  return *place.load(std::memory_order_relaxed);
}

void before_fork() {
  before_fork_of_pinned();
  for_each_pool([](DevicePool& pool) { pool.before_fork(); });
}
void after_fork() {
  for_each_pool([](DevicePool& pool) { pool.after_fork(false); });
  after_fork_of_pinned();
}

}  // namespace hybridnet::device
