// A number as an element of an array, where the kernels of this thread read it.
// Owner:   a block of a kernel.
// Threads: one.
#pragma once

#include <optional>

#include "device/memory.h"
#include "hybridnet/storage.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

class PlacedNumber {
 public:
  PlacedNumber(DType dtype, double value) {
    store_scalar(dtype, value, &element_);
    place();
  }
  // The same for the bytes of an element.
  PlacedNumber(const void* element, int64_t bytes) {
    std::memcpy(&element_, element, static_cast<size_t>(bytes));
    place();
  }
  PlacedNumber(const PlacedNumber&) = delete;
  const void* data() const { return on_device_ ? on_device_->data() : &element_; }

 private:
  void place() {
    device::Stream* const stream = device::current();
    if (stream == nullptr) return;
    on_device_.emplace(static_cast<int64_t>(sizeof element_), stream->device());
    stream->copy_in(on_device_->data(), &element_, sizeof element_);
  }

  uint64_t element_ = 0;
  std::optional<OwnedBlock> on_device_;
};

}  // namespace hybridnet::kernels
