// Labels as class numbers.
#pragma once

#include <cstdint>

namespace hybridnet::ops {

// A label as an integer, cut toward zero; what is no class number at all (NaN, huge) gives -1.
template <typename T>
int64_t class_of(T label) {
  return label > T(-1e9) && label < T(1e9) ? static_cast<int64_t>(label) : -1;
}

}  // namespace hybridnet::ops
