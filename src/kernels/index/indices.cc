#include "kernels/index/indices.h"

#include <algorithm>

#include "hybridnet/error.h"
#include "kernels/elementwise/integers.h"

namespace hybridnet::kernels {
namespace {

[[noreturn]] void out_of_bounds(int64_t index, int64_t size) {
  throw IndexError({.expected = size == 0
                                    ? "no index, for the axis has size 0"
                                    : "indices in [" + std::to_string(-size) + ", " + std::to_string(size - 1) + "]",
                    .given = std::to_string(index)});
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

Indices::Indices(const TensorRef& tensor) : Indices(tensor.size()) { read_indices(tensor, data_); }

void read_indices(const TensorRef& tensor, int64_t* to) {
  dispatch_dtype(tensor.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = tensor.as<T>();
    // NaN is out of bounds.
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        to[i] = static_cast<int64_t>(from[i]);
      } else {
        to[i] = to_integer(static_cast<double>(from[i]), INT64_MIN);
      }
    }
  });
}

void Indices::resolve(IndexMode mode, int64_t size, IndexUse use) {
  if (mode == IndexMode::kClip && size > 0) report_numbers(use, data_, size_, Bounds::index(size));
  resolve(mode, size);
}

void Indices::clip(int64_t low, int64_t high) {
  for (int64_t i = 0; i < size_; ++i) data_[i] = std::clamp(data_[i], low, high);
}

void Indices::resolve(IndexMode mode, int64_t size) {
  if (size_ > 0 && size == 0) out_of_bounds(data_[0], size);
  switch (mode) {
    case IndexMode::kClip:
      return clip(0, size - 1);
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
