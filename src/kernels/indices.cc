#include "kernels/indices.h"

#include <algorithm>

#include "hybridnet/error.h"
#include "kernels/integers.h"

namespace hybridnet::kernels {
namespace {

[[noreturn]] void out_of_bounds(int64_t index, int64_t size) {
  throw IndexError({.expected = size == 0
                                    ? "no index, for the axis has size 0"
                                    : "indices in [" + std::to_string(-size) + ", " + std::to_string(size - 1) + "]",
                    .given = std::to_string(index)});
}

// Without a branch in its loop, so that it is vectorized.
bool any_outside(const int64_t* indices, int64_t count, int64_t size) {
  uint64_t outside = 0;
  for (int64_t i = 0; i < count; ++i)
    outside |= static_cast<uint64_t>(static_cast<uint64_t>(indices[i]) >= static_cast<uint64_t>(size));
  return outside != 0;
}

void report_outside(const IndexUse& use, const int64_t* indices, int64_t count, int64_t size) {
  if (!may_report_out_of_range(use)) return;
  for (int64_t i = 0; i < count; ++i) {
    if (indices[i] >= 0 && indices[i] < size) continue;
    return report_out_of_range(use, index_text(indices[i]), i, size,
                               std::to_string(std::clamp<int64_t>(indices[i], 0, size - 1)) + " is used for it");
  }
}

}  // namespace

Indices::Indices(int64_t count)
    : size_(count),
      heap_(count > kOnStack ? std::make_unique_for_overwrite<int64_t[]>(static_cast<size_t>(count)) : nullptr),
      data_(heap_ ? heap_.get() : stack_) {}

Indices::Indices(Indices&& other) noexcept
    : size_(other.size_), heap_(std::move(other.heap_)), data_(heap_ ? heap_.get() : stack_) {
  if (!heap_) std::copy_n(other.stack_, size_, stack_);
}

Indices::Indices(const TensorRef& tensor) : Indices(tensor.size()) {
  dispatch_dtype(tensor.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = tensor.as<T>();
    // nan is out of bounds.
    for (int64_t i = 0; i < size_; ++i) {
      if constexpr (std::is_integral_v<T>) {
        data_[i] = static_cast<int64_t>(from[i]);
      } else {
        data_[i] = whole_number(static_cast<double>(from[i]), INT64_MIN);
      }
    }
  });
}

void Indices::resolve(IndexMode mode, int64_t size, IndexUse use) {
  if (mode == IndexMode::kClip && size > 0) {
    if (!any_outside(data_, size_, size)) return;
    report_outside(use, data_, size_, size);
  }
  resolve(mode, size);
}

void Indices::resolve(IndexMode mode, int64_t size) {
  if (size_ > 0 && size == 0) out_of_bounds(data_[0], size);
  switch (mode) {
    case IndexMode::kClip:
      for (int64_t i = 0; i < size_; ++i) data_[i] = std::clamp<int64_t>(data_[i], 0, size - 1);
      return;
    case IndexMode::kWrap:
      for (int64_t i = 0; i < size_; ++i) {
        if (data_[i] >= 0 && data_[i] < size) continue;
        const int64_t rest = data_[i] % size;
        data_[i] = rest < 0 ? rest + size : rest;
      }
      return;
    case IndexMode::kRaise:
      for (int64_t i = 0; i < size_; ++i) {
        if (data_[i] < -size || data_[i] >= size) out_of_bounds(data_[i], size);
        if (data_[i] < 0) data_[i] += size;
      }
  }
}

}  // namespace hybridnet::kernels
