#include "device/pinned.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "device/block_pool.h"
#include "device/stream.h"
#include "hybridnet/error.h"
#include "storage/size_class.h"

namespace hybridnet::device {
namespace {

constexpr int64_t kPage = 4096;

class PinnedPool final : public BlockPool {
 public:
  PinnedPool() : process_(getpid()) {}

  Block allocate(int64_t bytes) override;
  void free(Block block) override;
  void release_pool() override;

 private:
  bool is_forked() const { return getpid() != process_; }  // the driver's memory is not the child's
  Block new_block(int64_t bytes) override;
  void give_back(void* data) override { pinned_memory()->free_pinned(data); }

  const pid_t process_;
};

Storage& ordinary() { return storage({}); }

Storage::Block PinnedPool::allocate(int64_t bytes) {
  if (bytes <= 0 || is_forked()) return ordinary().allocate(bytes);
  Block block = take(rounded_bytes(std::max(bytes, kPage)));
  if (block.data == nullptr) return ordinary().allocate(bytes);
  try {
    wait_for_use(*block.use, /*for_readers_too=*/true);
  } catch (...) {
    free(block);
    throw;
  }
  const std::lock_guard lock(block.use->mutex);
  block.use->written = {};
  block.use->read.clear();
  return block;
}

Storage::Block PinnedPool::new_block(int64_t bytes) {
  void* const data = pinned_memory()->allocate_pinned(bytes);
  if (data == nullptr) return {};
  return {.data = data, .bytes = bytes, .device = {DeviceType::kCPUPinned, 0}, .use = new StreamUse};
}

void PinnedPool::free(Block block) {
  if (block.data == nullptr) return;
  if (block.use == nullptr) return ordinary().free(block);
  if (!is_forked()) keep(block);
}

void PinnedPool::release_pool() {
  if (!is_forked()) BlockPool::release_pool();
}

std::atomic<PinnedPool*> g_pool{nullptr};

}  // namespace

PinnedMemory* pinned_memory() {
  static auto* const found = dynamic_cast<PinnedMemory*>(backend());
  return found;
}

Storage* pinned_storage() {
  if (PinnedPool* const known = g_pool.load(std::memory_order_acquire)) return known;
  if (pinned_memory() == nullptr) return nullptr;
  static auto* const made = new PinnedPool;  // never destroyed: arrays in other static objects may die later
  g_pool.store(made, std::memory_order_release);
  return made;
}

void before_fork_of_pinned() {
  if (PinnedPool* const pool = g_pool.load(std::memory_order_acquire)) pool->before_fork();
}
void after_fork_of_pinned() {
  if (PinnedPool* const pool = g_pool.load(std::memory_order_acquire)) pool->after_fork(false);
}

}  // namespace hybridnet::device
