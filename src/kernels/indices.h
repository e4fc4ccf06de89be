// Index tensors of any dtype as int64, checked.
#pragma once

#include <cstdint>
#include <memory>

#include "hybridnet/op.h"
#include "kernels/out_of_range.h"

namespace hybridnet::kernels {

// What becomes of an index outside [0, size).
enum class IndexMode : int32_t {
  kClip,   // the nearest valid one; negative ones become 0
  kWrap,   // modulo size
  kRaise,  // negative ones count from the end; others are an IndexError
};

// A tensor's values as int64: on the stack if few, else on the heap. Floating values lose their fraction.
class Indices {
 public:
  explicit Indices(const TensorRef& tensor);
  explicit Indices(int64_t count);  // uninitialized
  Indices(Indices&& other) noexcept;

  // Brings every index into [0, size). Throws IndexError as the mode says, and for any index where size is 0.
  void resolve(IndexMode mode, int64_t size);
  // The same for the operator that reads the indices first: those that kClip changes are reported (out_of_range.h).
  void resolve(IndexMode mode, int64_t size, IndexUse use);
  // Brings every number, NaN too, to the nearest one in [low, high].
  void clip(int64_t low, int64_t high);

  int64_t size() const { return size_; }
  int64_t* data() { return data_; }
  const int64_t* data() const { return data_; }
  int64_t operator[](int64_t i) const { return data_[i]; }

 private:
  static constexpr int64_t kOnStack = 256;
  int64_t size_;
  std::unique_ptr<int64_t[]> heap_;
  int64_t stack_[kOnStack];
  int64_t* data_;
};

// A tensor's values as Indices has them: NaN becomes INT64_MIN.
void read_indices(const TensorRef& tensor, int64_t* to);

}  // namespace hybridnet::kernels
