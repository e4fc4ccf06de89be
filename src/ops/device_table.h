// Numbers that the host computes and kernels of device::current() read.
// Owner:   a block of an operator's kernel; the memory is used again after the launches that read it.
// Threads: one.
// Throws:  OutOfMemoryError, DeviceError.
#pragma once

#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::ops {

template <class T>
class DeviceTable {
 public:
  template <class Numbers>
  explicit DeviceTable(const Numbers& numbers)
      : block_(static_cast<int64_t>(numbers.size() * sizeof(T)), device::current()->device()) {
    device::current()->copy_in(block_.data(), numbers.data(), static_cast<int64_t>(numbers.size() * sizeof(T)));
  }
  const T* data() const { return static_cast<const T*>(block_.data()); }

 private:
  const OwnedBlock block_;
};

}  // namespace hybridnet::ops
