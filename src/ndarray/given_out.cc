#include "ndarray/given_out.h"

namespace hybridnet {
namespace {

Chunk& kept_in_memory(const NDArray& array) {
  Chunk& chunk = array.impl()->chunk->owner();
  chunk.memory();
  chunk.pin_for_good();
  return chunk;
}

// Copies that are there are dropped, since their values may change from now on. Kernels that run meanwhile may read
// them once more: they order themselves with the writes of the other side no more than before.
void add_user(Chunk& chunk) {
  chunk.outside_users.fetch_add(1, std::memory_order_acq_rel);
  if (!chunk.deleter) chunk.forget_copies();
}

}  // namespace

void give_out(const NDArray& array) { add_user(kept_in_memory(array)); }

bool may_change_unseen(const NDArray& array) {
  constexpr int64_t kMost = 1 << 20;
  return array.impl()->chunk->owner().is_foreign() && array.bytes() > kMost;
}

GivenOut::GivenOut(const NDArray& array) : chunk_(&kept_in_memory(array)) { add_user(*chunk_); }

GivenOut::~GivenOut() {
  // A task that began before the memory was given out may have kept a copy.
  if (!chunk_->deleter) chunk_->forget_copies();
  chunk_->outside_users.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace hybridnet
