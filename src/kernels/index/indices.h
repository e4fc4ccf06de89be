// Index tensors of any dtype, converted to int64 and checked.
#pragma once

#include <cstdint>
#include <memory>

#include "hybridnet/kernel.h"
#include "hybridnet/storage.h"
#include "kernels/index/out_of_range.h"

namespace hybridnet::kernels {

// The treatment of an index outside [0, size).
enum class IndexMode : int32_t {
  kClip,   // the nearest valid index; negative ones become 0
  kWrap,   // modulo size
  kRaise,  // negative ones count from the end; others raise IndexError
};

// A tensor's values as int64: on the stack if few, else on the heap. Floating values lose their fraction. If the thread
// has a current device (device/stream.h), the values are memory of the device, like the tensor: only functions with a
// form for devices may read them.
class Indices {
 public:
  explicit Indices(const TensorRef& tensor);
  explicit Indices(int64_t count);  // uninitialized
  Indices(Indices&& other) noexcept;

  // Maps every index into [0, size). Throws IndexError if the mode requires it, and for any index if size is 0.
  void resolve(IndexMode mode, int64_t size);
  // The same for the operator that reads the indices first: it reports the indices that kClip changes (out_of_range.h).
  // On a device it does so only with HYBRIDNET_STRICT=1: it must wait for the indices.
  void resolve(IndexMode mode, int64_t size, IndexUse use);
  // Reports the first number that is out of bounds (out_of_range.h); on a device only with HYBRIDNET_STRICT=1.
  void report(const IndexUse& use, const Bounds& bounds, const char* outcome = nullptr) const;
  // Multiplies every number by size and adds `next`, as many numbers where these are: the indices of two axes become
  // those of the merged axis.
  void merge(const int64_t* next, int64_t size);
  // Replaces every number, including NaN, by the nearest one in [low, high].
  void clip(int64_t low, int64_t high);

  Indices on_host() const;  // a copy of numbers in memory of a device

  int64_t size() const { return size_; }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  int64_t operator[](int64_t i) const { return data_[i]; }

 private:
  static constexpr int64_t kOnStack = 256;
  void resolve_on_device(IndexMode mode, int64_t size);
  int64_t size_;
  std::unique_ptr<OwnedBlock> on_device_;
  std::unique_ptr<int64_t[]> heap_;
  int64_t stack_[kOnStack];
  int64_t* data_;
};

// Writes a tensor's values the way Indices stores them: NaN becomes INT64_MIN.
void read_indices(const TensorRef& tensor, int64_t* to);

}  // namespace hybridnet::kernels
