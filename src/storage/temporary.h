// Vectors for the duration of a call, in memory of the storage: for temporary values of a kernel whose size is not
// known when it is linked. The blocks return to the thread's cache, so a call that is repeated allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "hybridnet/storage.h"

namespace hybridnet {

template <typename T>
class TemporaryAllocator {
 public:
  using value_type = T;
  TemporaryAllocator() = default;
  template <typename U>
  TemporaryAllocator(const TemporaryAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t n) {
    if (n > (SIZE_MAX / 2 - kHead) / sizeof(T)) throw std::bad_array_new_length();
    const Storage::Block block = storage({}).allocate(static_cast<int64_t>(kHead + n * sizeof(T)));
    ::new (block.data) Storage::Block(block);
    return reinterpret_cast<T*>(static_cast<char*>(block.data) + kHead);
  }
  void deallocate(T* p, size_t) noexcept {
    storage({}).free(*reinterpret_cast<Storage::Block*>(reinterpret_cast<char*>(p) - kHead));
  }
  bool operator==(const TemporaryAllocator&) const = default;

 private:
  static constexpr size_t kHead = 64;  // the block stands before the elements, which are 64-byte aligned
  static_assert(sizeof(Storage::Block) <= kHead && alignof(T) <= kHead);
};

template <typename T>
using Temporary = std::vector<T, TemporaryAllocator<T>>;

}  // namespace hybridnet
