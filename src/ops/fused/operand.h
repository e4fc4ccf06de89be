// How a fused chain of elementwise operators reads one of its inputs.
// Threads: any; an operand does not change.
#pragma once

#include <algorithm>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/elementwise/device_fused.h"

namespace hybridnet::ops {

// The access to an input: dense, or with zero strides along broadcast axes. Axes are in the order of memory.
class Operand {
 public:
  Operand(const TensorSpec& operand, const TensorSpec& whole, Format format) : bytes_(dtype_size(whole.dtype)) {
    full_ = operand.shape.size() == whole.shape.size();
    single_ = !full_ && operand.shape.size() == 1;
    if (full_ || single_) return;
    const int ndim = whole.shape.ndim();
    std::vector<int64_t> strides(static_cast<size_t>(ndim), 0);
    int64_t stride = 1;
    for (int i = operand.shape.ndim() - 1, axis = ndim - 1; i >= 0; --i, --axis) {
      if (operand.shape[i] != 1) strides[static_cast<size_t>(axis)] = stride;
      stride *= operand.shape[i];
    }
    std::vector<int> order;
    for (int axis = 0; axis < ndim; ++axis) order.push_back(axis);
    if (format == Format::kChannelsLast && ndim > 2) std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    for (const int axis : order) push_axis(whole.shape[axis], strides[static_cast<size_t>(axis)]);
  }
  bool full() const { return full_; }
  bool single() const { return single_; }
  // The same for devices.
  kernels::FusedInput on_device() const {
    kernels::FusedInput input{.full = full_};
    for (const Axis& axis : axes_) {
      input.dims.push_back(axis.size);
      input.strides.push_back(axis.stride);
    }
    return input;
  }

  // Writes elements [begin, begin + n) of the broadcast operand.
  void expand(const char* data, char* out, int64_t begin, int64_t n) const {
    switch (bytes_) {
      case 1:
        return expand_as<uint8_t>(data, out, begin, n);
      case 2:
        return expand_as<uint16_t>(data, out, begin, n);
      case 4:
        return expand_as<uint32_t>(data, out, begin, n);
      default:
        return expand_as<uint64_t>(data, out, begin, n);
    }
  }

 private:
  struct Axis {
    int64_t size, stride;
  };

  // Adjacent axes with compatible strides become one axis.
  void push_axis(int64_t size, int64_t stride) {
    if (size == 1) return;
    if (!axes_.empty() && axes_.back().stride == stride * size) {
      axes_.back() = {axes_.back().size * size, stride};
    } else {
      axes_.push_back({size, stride});
    }
  }

  template <typename T>
  void expand_as(const char* data, char* out, int64_t begin, int64_t n) const {
    const T* from = reinterpret_cast<const T*>(data);
    T* to = reinterpret_cast<T*>(out);
    if (axes_.empty()) {
      std::fill(to, to + n, from[0]);
      return;
    }
    const Axis inner = axes_.back();
    int64_t run = begin / inner.size;
    int64_t at = begin % inner.size;
    while (n > 0) {
      const T* row = from + offset_of_run(run++);
      const int64_t count = std::min(n, inner.size - at);
      if (inner.stride == 0) {
        std::fill(to, to + count, row[0]);
      } else {
        std::copy(row + at, row + at + count, to);  // the innermost axis of the operand itself: stride 1
      }
      to += count;
      n -= count;
      at = 0;
    }
  }

  int64_t offset_of_run(int64_t run) const {
    int64_t offset = 0;
    for (size_t i = axes_.size() - 1; i-- > 0;) {
      offset += run % axes_[i].size * axes_[i].stride;
      run /= axes_[i].size;
    }
    return offset;
  }

  int64_t bytes_;
  bool full_ = false, single_ = false;
  std::vector<Axis> axes_;
};

}  // namespace hybridnet::ops
