#include "device/pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/launch_batch.h"
#include "device/outside.h"
#include "device/stream.h"
#include "hybridnet/error.h"
#include "storage/size_class.h"

namespace hybridnet::device {
namespace {

constexpr int64_t kLeastBytes = 512;  // alignment of the drivers' memory

class DevicePool final : public Storage {
 public:
  explicit DevicePool(Device device) : device_(device), derived_(0) {}

  Block allocate(int64_t bytes) override;
  void free(Block block) override;
  void release_pool() override;
  Statistics statistics() const override {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }
  void reset_peak() override {
    const std::lock_guard lock(mutex_);
    statistics_.peak_in_use = statistics_.in_use;
  }
  DerivedBudget& derived_budget() override { return derived_; }
  void before_fork() override { mutex_.lock(); }
  void after_fork(bool) override { mutex_.unlock(); }

 private:
  Block counted(int64_t bytes);
  Block counted_at_once(int64_t bytes);
  Block take(int64_t bytes);
  Block taken_from_driver(int64_t bytes);
  void release_all();
  [[noreturn]] void out_of_memory(int64_t bytes) const;

  const Device device_;
  mutable std::mutex mutex_;                      // guards the members below
  std::map<int64_t, std::vector<Block>> spares_;  // by size; the last freed is the first to be taken
  Statistics statistics_;
  DerivedBudget derived_;  // no copies are derived from arrays of devices
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
  const Block block = counted(rounded);
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
Storage::Block DevicePool::counted(int64_t bytes) {
  try {
    return counted_at_once(bytes);
  } catch (const OutOfMemoryError&) {
    LaunchBatch* const batch = LaunchBatch::current();
    if (batch == nullptr || !batch->give_back()) throw;
    return counted_at_once(bytes);
  }
}

Storage::Block DevicePool::counted_at_once(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const Block block = take(bytes);
  statistics_.in_use += block.bytes;
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  ++statistics_.allocations;
  return block;
}

// Under mutex_.
Storage::Block DevicePool::take(int64_t bytes) {
  const auto found = spares_.find(bytes);
  if (found == spares_.end() || found->second.empty()) return taken_from_driver(bytes);
  const Block block = found->second.back();
  found->second.pop_back();
  statistics_.pooled -= block.bytes;
  return block;
}

// Under mutex_.
Storage::Block DevicePool::taken_from_driver(int64_t bytes) {
  Backend& driver = *backend();
  driver.make_current(device_.id);
  void* data = driver.allocate(bytes);
  if (data == nullptr && statistics_.pooled > 0) {
    release_all();
    data = driver.allocate(bytes);
  }
  if (data == nullptr) out_of_memory(bytes);
  ++statistics_.system_allocations;
  return {.data = data, .bytes = bytes, .device = device_, .use = new StreamUse};
}

void DevicePool::free(Block block) {
  if (block.data == nullptr) return;
  if (LaunchBatch* const batch = LaunchBatch::current(); batch != nullptr && block.use->temporary_of == current())
    return batch->keep(block);
  if (Stream* const stream = std::exchange(block.use->temporary_of, nullptr)) {
    StreamUse* const uses[] = {block.use};
    stream->end({}, uses);
  }
  end_use_outside(*block.use, device_);
  const std::lock_guard lock(mutex_);
  statistics_.in_use -= block.bytes;
  statistics_.pooled += block.bytes;
  spares_[block.bytes].push_back(block);
}

void DevicePool::release_pool() {
  const std::lock_guard lock(mutex_);
  release_all();
}

// Under mutex_. Gives the spare blocks back to the driver, when the work on them is done.
void DevicePool::release_all() {
  Backend& driver = *backend();
  driver.make_current(device_.id);
  for (auto& [size, blocks] : spares_) {
    for (; !blocks.empty(); blocks.pop_back()) {
      const Block& block = blocks.back();
      wait_for_use(*block.use, /*for_readers_too=*/true);  // may throw: the blocks that are left stay
      driver.free(block.data);
      delete block.use;
      statistics_.pooled -= block.bytes;
    }
  }
  spares_.clear();
}

void DevicePool::out_of_memory(int64_t bytes) const {
  const auto [free, total] = backend()->free_and_total_bytes(device_.id);
  throw OutOfMemoryError(
      {.message = device_.str() + " has no " + std::to_string(bytes) + " bytes left: " + std::to_string(free) + " of " +
                  std::to_string(total) + " bytes are free, " + std::to_string(statistics_.in_use) +
                  " are in use by arrays of this process (at most " + std::to_string(statistics_.peak_in_use) + ")",
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
  for_each_pool([](DevicePool& pool) { pool.before_fork(); });
}
void after_fork() {
  for_each_pool([](DevicePool& pool) { pool.after_fork(false); });
}

}  // namespace hybridnet::device
