#include "ndarray/given_out.h"

#include <mutex>

namespace hybridnet {
namespace {

// Chunk::deleter of memory that is the library's own, and foreign as long as others have it.
struct OwnMemory {
  Chunk* chunk;
  DerivedData* derived;
  int64_t users = 0;
  bool for_good = false;

  void operator()() const {
    if (chunk->block.data && !chunk->mapping) storage(chunk->block.device).free(chunk->block);
  }
};

std::mutex& mutex() {
  static auto& all = *new std::mutex;
  return all;
}

// Under the lock; null: the memory came from outside. Kernels that run meanwhile may see it either way: they order
// themselves with the writes of the other side no more than before.
OwnMemory* made_foreign(Chunk& chunk) {
  if (chunk.deleter) return chunk.deleter.target<OwnMemory>();
  DerivedData* const derived = chunk.derived();
  derived->keep_pages();
  chunk.deleter = OwnMemory{&chunk, derived};
  derived->drop();
  return chunk.deleter.target<OwnMemory>();
}

void take_back(Chunk& chunk) {
  const std::lock_guard lock(mutex());
  OwnMemory* const own = chunk.deleter.target<OwnMemory>();
  if (!own || --own->users > 0 || own->for_good) return;
  own->derived->drop();  // a task that began before the memory was given out may have kept a copy
  chunk.deleter = nullptr;
}

Chunk& kept_in_memory(const NDArray& array) {
  Chunk& chunk = array.impl()->chunk->owner();
  chunk.memory();
  chunk.pin_for_good();
  return chunk;
}

}  // namespace

void give_out(const NDArray& array) {
  Chunk& chunk = kept_in_memory(array);
  const std::lock_guard lock(mutex());
  if (OwnMemory* own = made_foreign(chunk)) own->for_good = true;
}

bool may_change_unseen(const NDArray& array) {
  constexpr int64_t kMost = 1 << 20;
  return array.impl()->chunk->owner().deleter && array.bytes() > kMost;
}

GivenOut::GivenOut(const NDArray& array) : chunk_(&kept_in_memory(array)) {
  const std::lock_guard lock(mutex());
  if (OwnMemory* own = made_foreign(*chunk_)) ++own->users;
}

GivenOut::~GivenOut() { take_back(*chunk_); }

}  // namespace hybridnet
