#include "plan/arena_pool.h"

#include <algorithm>
#include <utility>

namespace hybridnet {

void ArenaPool::Arena::release() {
  if (block.data) storage(block.device).free(block);
  block = {};
  asked = 0;
}

std::unique_ptr<ArenaPool::Arena> ArenaPool::take(int64_t bytes, Device device) {
  std::unique_ptr<Arena> arena = spares_.take();
  // A condition must not take the arena of its loop's body, which is far too large for it.
  if (!arena || arena->block.bytes < bytes || arena->asked / 4 > bytes) {
    const std::lock_guard lock(mutex_);
    if (arena) kept_.push_back(std::move(arena));
    arena = take_kept(bytes);
  }
  if (arena->block.data && !(arena->block.device == device)) arena->release();
  // Frees the old block first: its contents are not needed, and the new block may take its place.
  if (arena->block.bytes < bytes) resize(*arena, std::max(bytes, arena->asked + arena->asked / 2), device);
  arena->most_needed = std::max(arena->most_needed, bytes);
  arena->used = true;
  if (++arena->uses == kUsesBetweenSweeps) sweep(*arena, bytes, device);
  return arena;
}

// Returns the smallest arena that fits, else the largest one. Takes arenas of other threads before it makes a new one.
std::unique_ptr<ArenaPool::Arena> ArenaPool::take_kept(int64_t bytes) {
  const auto fits = [bytes](const std::unique_ptr<Arena>& arena) { return arena->block.bytes >= bytes; };
  while (std::none_of(kept_.begin(), kept_.end(), fits)) {
    std::unique_ptr<Arena> left = spares_.take_any();
    if (!left) break;
    kept_.push_back(std::move(left));
  }
  if (kept_.empty()) return std::make_unique<Arena>();
  const auto better = [bytes](const std::unique_ptr<Arena>& a, const std::unique_ptr<Arena>& b) {
    const bool a_fits = a->block.bytes >= bytes, b_fits = b->block.bytes >= bytes;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a->block.bytes < b->block.bytes : a->block.bytes > b->block.bytes;
  };
  const auto best = std::min_element(kept_.begin(), kept_.end(), better);
  std::unique_ptr<Arena> arena = std::move(*best);
  kept_.erase(best);
  return arena;
}

void ArenaPool::give(std::unique_ptr<Arena> arena) {
  spares_.give(arena);
  if (!arena) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(arena));
}

void ArenaPool::resize(Arena& arena, int64_t bytes, Device device) {
  arena.release();
  arena.block = storage(device).allocate(bytes);
  arena.asked = bytes;
}

void ArenaPool::sweep(Arena& in_use, int64_t bytes, Device device) {
  if (in_use.most_needed < in_use.asked / 4) resize(in_use, in_use.most_needed, device);
  in_use.most_needed = bytes;
  in_use.uses = 0;
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [](const std::unique_ptr<Arena>& arena) { return !std::exchange(arena->used, false); });
  spares_.sweep([](Arena& arena) { return std::exchange(arena.used, false); });
}

Ref<ArenaPool> ArenaPool::for_bodies() {
  const std::lock_guard lock(mutex_);
  if (!for_bodies_) for_bodies_ = make_ref<ArenaPool>();
  return for_bodies_;
}

}  // namespace hybridnet
