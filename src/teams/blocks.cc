#include "teams/blocks.h"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace hybridnet::teams {
namespace {

constexpr size_t kBlockBytes = 512, kBlocks = 2048;

// All blocks lie in one array, so that `delete` can recognize them by their address: oneDNN may also delete memory that
// the C++ library has allocated for it.
alignas(64) std::byte all_blocks[kBlocks * kBlockBytes];

bool is_block(const void* p) {
  const auto* at = static_cast<const std::byte*>(p);
  return at >= all_blocks && at < all_blocks + sizeof(all_blocks);
}

// Blocks that no thread keeps.
class Spare {
 public:
  size_t take(void** blocks, size_t wanted) {
    const std::lock_guard lock(mutex_);
    size_t taken = 0;
    for (; taken < wanted && free_; ++taken) {
      blocks[taken] = free_;
      free_ = free_->next;
    }
    for (; taken < wanted && unused_ < kBlocks; ++taken) blocks[taken] = all_blocks + kBlockBytes * unused_++;
    return taken;
  }
  void give(void* const* blocks, size_t count) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < count; ++i) free_ = new (blocks[i]) Free{free_};
  }
  // Called around a fork: in the child the lock must not be held by a thread that does not exist there.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  struct Free {
    Free* next;
  };
  std::mutex mutex_;
  Free* free_ = nullptr;
  size_t unused_ = 0;  // index of the first block that was never taken
};
constinit Spare spare;

[[gnu::constructor]] void follow_forks() {
  pthread_atfork([] { spare.lock(); }, [] { spare.unlock(); }, [] { spare.unlock(); });
}

// The blocks that a thread keeps.
struct Kept {
  std::array<void*, 32> blocks{};
  size_t count = 0;
  int scopes = 0;  // number of living ShortLivedBlocks

  void* take() {
    if (count == 0) count = spare.take(blocks.data(), blocks.size() / 2);
    return count == 0 ? nullptr : blocks[--count];
  }
  void give(void* block) {
    if (count == blocks.size()) give_back(count / 2);
    blocks[count++] = block;
  }
  void give_back(size_t number) {
    count -= number;
    spare.give(blocks.data() + count, number);
  }
};
// A pointer, because libraries that are loaded later need the rest of the static memory for thread-local variables.
// Null before the first scope, and in the thread's last destructors, which may still delete blocks.
constinit thread_local Kept* kept = nullptr;

struct EndOfThread {
  ~EndOfThread() {
    if (!kept) return;
    kept->give_back(kept->count);
    delete std::exchange(kept, nullptr);
  }
};

}  // namespace

ShortLivedBlocks::ShortLivedBlocks() noexcept {
  static thread_local EndOfThread at_end;
  static_cast<void>(at_end);
  if (!kept) kept = new (std::nothrow) Kept;
  if (kept) ++kept->scopes;
}
ShortLivedBlocks::~ShortLivedBlocks() {
  if (kept && kept->scopes > 0) --kept->scopes;
}

}  // namespace hybridnet::teams

using namespace hybridnet::teams;

// `operator new` and `operator delete` of the copy of oneDNN, cmake/rebind_dnnl.py.
extern "C" {

void* HNnwm(size_t bytes) {
  if (kept && kept->scopes > 0 && bytes <= kBlockBytes) {
    if (void* const block = kept->take()) return block;
  }
  return ::operator new(bytes);
}

void HNdlPv(void* p) noexcept {
  if (!is_block(p)) return ::operator delete(p);
  kept ? kept->give(p) : spare.give(&p, 1);
}
}
