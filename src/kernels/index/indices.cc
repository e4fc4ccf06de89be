#include "kernels/index/indices.h"

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/env.h"
#include "hybridnet/error.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/device_index.h"

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
      on_device_(device::current() ? std::make_unique<OwnedBlock>(count * static_cast<int64_t>(sizeof(int64_t)),
                                                                  device::current()->device())
                                   : nullptr),
      heap_(!on_device_ && count > kOnStack ? std::make_unique_for_overwrite<int64_t[]>(static_cast<size_t>(count))
                                            : nullptr),
      data_(on_device_ ? static_cast<int64_t*>(on_device_->data())
            : heap_    ? heap_.get()
                       : stack_) {}

Indices::Indices(Indices&& other) noexcept
    : size_(other.size_),
      on_device_(std::move(other.on_device_)),
      heap_(std::move(other.heap_)),
      data_(on_device_ ? static_cast<int64_t*>(on_device_->data())
            : heap_    ? heap_.get()
                       : stack_) {
  if (!on_device_ && !heap_) std::copy_n(other.stack_, size_, stack_);
}

Indices::Indices(const TensorRef& tensor) : Indices(tensor.size()) { read_indices(tensor, data_); }

void read_indices(const TensorRef& tensor, int64_t* to) {
  if (device::current()) return on_device::read_indices(tensor, to);
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
  if (mode == IndexMode::kClip && size > 0) {
    report(use, Bounds::index(size));
  }
  resolve(mode, size);
}

void Indices::report(const IndexUse& use, const Bounds& bounds, const char* outcome) const {
  if (!on_device_) return report_numbers(use, data_, size_, bounds, outcome);
  if (environment().strict && on_device::has_outside(data_, size_, bounds.low, bounds.high))
    report_numbers(use, on_host().data(), size_, bounds, outcome);
}

Indices Indices::on_host() const {
  device::Stream& stream = *device::current();
  const device::Scope cpu(nullptr);
  Indices copy(size_);
  stream.copy_out(copy.data(), data_, size_ * static_cast<int64_t>(sizeof(int64_t)));
  return copy;
}

void Indices::resolve_on_device(IndexMode mode, int64_t size) {
  if (size_ == 0) return;
  if (size == 0) out_of_bounds(on_host()[0], size);
  if (mode == IndexMode::kClip) return clip(0, size - 1);
  if (mode == IndexMode::kWrap) return on_device::wrap_indices(data_, size_, size);
  if (on_device::count_from_end(data_, size_, size)) return;
  const Indices all = on_host();
  for (int64_t i = 0; i < size_; ++i)
    if (all[i] < -size || all[i] >= size) out_of_bounds(all[i], size);
}

void Indices::merge(const int64_t* next, int64_t size) {
  if (on_device_) return on_device::merge_indices(data_, next, size_, size);
  for (int64_t i = 0; i < size_; ++i) data_[i] = data_[i] * size + next[i];
}

void Indices::clip(int64_t low, int64_t high) {
  if (on_device_) return on_device::clip_indices(data_, size_, low, high);
  for (int64_t i = 0; i < size_; ++i) data_[i] = std::clamp(data_[i], low, high);
}

void Indices::resolve(IndexMode mode, int64_t size) {
  if (on_device_) return resolve_on_device(mode, size);
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
