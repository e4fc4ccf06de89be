#include "device/block_pool.h"

#include <algorithm>

#include "device/stream.h"

namespace hybridnet::device {

Storage::Statistics BlockPool::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void BlockPool::reset_peak() {
  const std::lock_guard lock(mutex_);
  statistics_.peak_in_use = statistics_.in_use;
}

Storage::Block BlockPool::take(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Block block;
  if (const auto spares = spares_.find(bytes); spares != spares_.end() && !spares->second.empty()) {
    block = spares->second.back();
    spares->second.pop_back();
    statistics_.pooled -= block.bytes;
  } else {
    block = new_block(bytes);
    if (block.data == nullptr) return block;
    ++statistics_.system_allocations;
  }
  ++statistics_.allocations;
  statistics_.in_use += block.bytes;
  statistics_.peak_in_use = std::max(statistics_.peak_in_use, statistics_.in_use);
  return block;
}

void BlockPool::keep(const Block& block) {
  const std::lock_guard lock(mutex_);
  statistics_.in_use -= block.bytes;
  statistics_.pooled += block.bytes;
  spares_[block.bytes].push_back(block);
}

void BlockPool::release_pool() {
  const std::lock_guard lock(mutex_);
  give_all_back();
}

void BlockPool::give_all_back() {
  for (auto& [size, blocks] : spares_) {
    for (; !blocks.empty(); blocks.pop_back()) {
      const Block& block = blocks.back();
      wait_for_use(*block.use, /*for_readers_too=*/true);  // may throw: the blocks that are left stay
      give_back(block.data);
      delete block.use;
      statistics_.pooled -= block.bytes;
    }
  }
  spares_.clear();
}

}  // namespace hybridnet::device
