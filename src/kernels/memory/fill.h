// Fills a tensor with one value.
#pragma once

#include <cstring>
#include <type_traits>

#include "device/stream.h"
#include "hybridnet/kernel.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/memory/device_copy.h"

namespace hybridnet::kernels {

// Converts a number to an element; integers outside a narrow type wrap, like NumPy's astype. Values outside of int64
// saturate there first; NaN becomes 0.
template <typename T>
T element_from(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(to_integer(value));
  else
    return static_cast<T>(value);
}

inline void fill(const TensorRef& out, double value) {
  dispatch_dtype(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = out.as<T>();
    const T v = element_from<T>(value);
    if (device::current()) {
      uint64_t bits = 0;
      std::memcpy(&bits, &v, sizeof(T));
      return on_device::fill_elements(data, out.size(), sizeof(T), bits);
    }
    parallel_for(out.size(), 0.08 * sizeof(T), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = v;
    });
  });
}

}  // namespace hybridnet::kernels
