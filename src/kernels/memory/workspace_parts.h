// The consecutive parts of a workspace: the same code computes its size and the addresses of its parts.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

class WorkspaceParts {
 public:
  // memory: 64-byte aligned; null: only computes the size.
  explicit WorkspaceParts(void* memory) : memory_(static_cast<char*>(memory)) {}

  // Reserves n elements, 64-byte aligned; returns null without memory.
  template <typename T>
  T* take(int64_t n) {
    T* part = memory_ ? reinterpret_cast<T*>(memory_ + bytes_) : nullptr;
    bytes_ += (n * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return part;
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* const memory_;
  int64_t bytes_ = 0;
};

}  // namespace hybridnet::kernels
