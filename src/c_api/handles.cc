#include "c_api/handles.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/thread_slots.h"
#include "hybridnet/error.h"

namespace hybridnet::c_api::detail {

// state: generation (32 bits), whether the handle is live (1 bit), number of calls that use the object (31 bits). Each
// slot has its own cache line, because threads use their own handles at the same time.
struct alignas(kCacheLine) Slot {
  std::atomic<uint64_t> state{0};
  uint32_t index = 0;
  HandleKind kind = HandleKind::kNone;
  Handled* object = nullptr;
};

namespace {

constexpr uint64_t kLive = uint64_t{1} << 31, kPins = kLive - 1;
constexpr uint64_t generation_of(uint64_t state) { return state >> 32; }

// A handle has its kind in the upper 8 bits, which are 0 in every address of user space; then 24 bits of generation and
// 32 bits of index. A slot whose generations are used up is not used again, so no handle value is issued twice.
constexpr uint64_t kMaxGeneration = (uint64_t{1} << 24) - 1;
static_assert(sizeof(void*) == sizeof(uint64_t));

struct Parts {
  HandleKind kind;
  uint64_t generation;
  uint32_t index;
};
Parts parts_of(const void* handle) {
  const auto bits = reinterpret_cast<uint64_t>(handle);
  return {static_cast<HandleKind>(bits >> 56), bits >> 32 & kMaxGeneration, static_cast<uint32_t>(bits)};
}
void* handle_of(HandleKind kind, uint64_t generation, uint32_t index) {
  return reinterpret_cast<void*>(static_cast<uint64_t>(kind) << 56 | generation << 32 | index);
}

constexpr size_t kChunk = 2048, kMaxChunks = 8192;

// The table of slots. Each group of threads caches free slots under its own, uncontended lock; groups exchange kBatch
// slots at a time with the shared list.
class Table {
 public:
  Slot* find(uint32_t index) const {
    if (index / kChunk >= kMaxChunks) return nullptr;
    Slot* chunk = chunks_[index / kChunk].load(std::memory_order_acquire);
    return chunk ? chunk + index % kChunk : nullptr;
  }
  Slot* take() {
    Group& group = groups_[thread_slot()];
    const std::lock_guard lock(group.mutex);
    if (group.num_free == 0) group.num_free = refill(group.free);
    return group.free[--group.num_free];
  }
  void give(Slot* slot) noexcept {
    Group& group = groups_[thread_slot()];
    const std::lock_guard lock(group.mutex);
    if (group.num_free == 2 * kBatch) {
      const std::lock_guard lock_all(mutex_);
      free_.insert(free_.end(), group.free + kBatch, group.free + 2 * kBatch);  // grow() has reserved the memory
      group.num_free = kBatch;
    }
    group.free[group.num_free++] = slot;
  }

 private:
  static constexpr size_t kBatch = 32;
  struct alignas(kCacheLine) Group {
    std::mutex mutex;
    size_t num_free = 0;
    Slot* free[2 * kBatch];
  };

  // Writes up to kBatch free slots to `slots`, at least one, and returns their number. Takes new memory only if the
  // shared list is empty.
  size_t refill(Slot** slots) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    const size_t n = std::min(kBatch, free_.size());
    std::copy(free_.end() - static_cast<std::ptrdiff_t>(n), free_.end(), slots);
    free_.resize(free_.size() - n);
    return n;
  }
  void grow() {
    if (num_chunks_ == kMaxChunks)
      throw OutOfMemoryError({.message = "there are " + std::to_string(kMaxChunks * kChunk) + " live handles",
                              .fix = "free handles that are no longer needed"});
    free_.reserve((num_chunks_ + 1) * kChunk);
    auto* chunk = new Slot[kChunk];
    for (size_t i = kChunk; i-- > 0;) {
      chunk[i].index = static_cast<uint32_t>(num_chunks_ * kChunk + i);
      free_.push_back(chunk + i);
    }
    chunks_[num_chunks_++].store(chunk, std::memory_order_release);
  }

  std::atomic<Slot*> chunks_[kMaxChunks] = {};
  Group groups_[kThreadSlots];
  std::mutex mutex_;  // protects the members below; taken after the mutex of a group
  size_t num_chunks_ = 0;
  std::vector<Slot*> free_;
};

// Never destroyed: handles may be freed by destructors of static objects.
Table& table() {
  static auto& made = *new Table;
  return made;
}

const char* kind_text(HandleKind kind) {
  switch (kind) {
    case HandleKind::kArray:
      return "an array";
    case HandleKind::kModel:
      return "a model";
    case HandleKind::kOp:
      return "a prepared operator";
    case HandleKind::kSession:
      return "a session";
    case HandleKind::kTrainer:
      return "a trainer";
    case HandleKind::kBatcher:
      return "a batcher";
    default:
      return "nothing";
  }
}
bool is_kind(HandleKind kind) { return kind > HandleKind::kNone && kind <= HandleKind::kTrainer; }

[[noreturn]] void refuse(HandleKind wanted, const char* function, const char* argument, std::string given,
                         std::string fix) {
  throw ValueError({.op = function,
                    .input = argument,
                    .expected = std::string("the handle of ") + kind_text(wanted),
                    .given = std::move(given),
                    .fix = std::move(fix)});
}

// Returns the slot of a handle, which another thread may free at any moment. Throws if the handle is malformed or of
// another kind.
Slot* checked(const void* handle, HandleKind kind, const char* function, const char* argument) {
  if (handle == nullptr) refuse(kind, function, argument, "NULL", "");
  const Parts parts = parts_of(handle);
  Slot* slot = is_kind(parts.kind) ? table().find(parts.index) : nullptr;
  if (!slot)
    refuse(kind, function, argument, "a value that is no handle", "pass a handle that a function of c_api.h returned");
  if (parts.kind != kind) refuse(kind, function, argument, std::string("the handle of ") + kind_text(parts.kind), "");
  return slot;
}

[[noreturn]] void refuse_freed(HandleKind kind, const char* function, const char* argument) {
  refuse(kind, function, argument, "a handle that was freed", "free a handle once, after its last use");
}

bool is_live(uint64_t state, const void* handle) {
  return generation_of(state) == parts_of(handle).generation && (state & kLive) != 0;
}

// Called when the handle is freed and no call uses the object.
void destroy(Slot* slot) noexcept {
  delete std::exchange(slot->object, nullptr);
  const uint64_t next = generation_of(slot->state.load(std::memory_order_relaxed)) + 1;
  slot->state.store(next << 32, std::memory_order_release);
  if (next <= kMaxGeneration) table().give(slot);
}

}  // namespace

void* add(HandleKind kind, std::unique_ptr<Handled> object) {
  Slot* slot = table().take();
  const uint64_t generation = generation_of(slot->state.load(std::memory_order_relaxed));
  slot->kind = kind;
  slot->object = object.release();
  slot->state.store(generation << 32 | kLive, std::memory_order_release);
  return handle_of(kind, generation, slot->index);
}

Slot* pin(const void* handle, HandleKind kind, const char* function, const char* argument) {
  Slot* slot = checked(handle, kind, function, argument);
  uint64_t state = slot->state.load(std::memory_order_acquire);
  do {
    if (!is_live(state, handle)) refuse_freed(kind, function, argument);
  } while (!slot->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire));
  if (slot->kind == kind) return slot;
  unpin(slot);  // bits that happen to name a live slot of another kind
  refuse(kind, function, argument, "a value that is no handle", "pass a handle that a function of c_api.h returned");
}

void unpin(Slot* slot) noexcept {
  const uint64_t before = slot->state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kPins) == 1 && (before & kLive) == 0) destroy(slot);
}

Handled* object_of(const Slot* slot) { return slot->object; }

void free(const void* handle, HandleKind kind, const char* function) {
  if (handle == nullptr) return;
  // Pinned during the call, so that exactly one unpin(), the last, destroys the object.
  Slot* slot = pin(handle, kind, function, "handle");
  const uint64_t before = slot->state.fetch_and(~kLive, std::memory_order_acq_rel);
  unpin(slot);
  if ((before & kLive) == 0) refuse_freed(kind, function, "handle");  // another thread was first
}

}  // namespace hybridnet::c_api::detail
