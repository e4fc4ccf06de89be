#include "ndarray/given_out.h"

#include <array>
#include <mutex>

#include "device/outside.h"

namespace hybridnet {
namespace {

// The chunks that were exported last. A program may export every result, so their number is limited.
struct Recent {
  std::mutex mutex;
  std::array<uint64_t, 4096> chunks{};  // by count modulo size
  std::atomic<uint64_t> count{0};
};

Recent& recent() {
  static Recent made;
  return made;
}

void remember(const Chunk& chunk) {
  Recent& all = recent();
  const std::lock_guard lock(all.mutex);
  const uint64_t count = all.count.load(std::memory_order_relaxed);
  all.chunks[count % all.chunks.size()] = chunk.id;
  all.count.store(count + 1, std::memory_order_release);
}

Chunk& kept_in_memory(const NDArray& array) {
  Chunk& chunk = array.impl()->chunk->owner();
  chunk.memory();
  chunk.pin_for_good();
  return chunk;
}

// Drops the copies of the values, since the values may change from now on. Kernels that run meanwhile may still read
// the copies once: as before, they are not ordered with writes of the other side.
void add_user(Chunk& chunk) {
  remember(chunk);
  chunk.outside_users.fetch_add(1, std::memory_order_acq_rel);
  if (!chunk.deleter) chunk.forget_copies();
  if (chunk.block.use != nullptr) device::note_used_outside(*chunk.block.use);
}

}  // namespace

void give_out(const NDArray& array) { add_user(kept_in_memory(array)); }

bool may_change_unseen(const NDArray& array) {
  constexpr int64_t kMost = 1 << 20;
  return array.impl()->chunk->owner().is_foreign() && array.bytes() > kMost;
}

uint64_t times_given_out() { return recent().count.load(std::memory_order_acquire); }

bool was_given_out_since(const NDArray& array, uint64_t count) {
  Recent& all = recent();
  const std::lock_guard lock(all.mutex);
  const uint64_t now = all.count.load(std::memory_order_relaxed);
  if (now - count > all.chunks.size()) return true;
  const uint64_t id = array.impl()->chunk->owner().id;
  for (uint64_t i = count; i < now; ++i)
    if (all.chunks[i % all.chunks.size()] == id) return true;
  return false;
}

GivenOut::GivenOut(const NDArray& array) : chunk_(&kept_in_memory(array)) { add_user(*chunk_); }

GivenOut::~GivenOut() {
  // A task that began before the memory was exported may have kept a copy.
  if (!chunk_->deleter) chunk_->forget_copies();
  chunk_->outside_users.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace hybridnet
