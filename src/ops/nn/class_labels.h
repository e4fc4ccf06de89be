// Labels as class numbers.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/index/out_of_range.h"

namespace hybridnet::ops {

// Converts a label to an integer, truncated toward zero. Returns -1 if it is no class number (NaN, huge).
template <typename T>
int64_t class_of(T label) {
  return label > T(-1e9) && label < T(1e9) ? static_cast<int64_t>(label) : -1;
}

// Reports the first label that is no class and for which accepted(label) is false. outcome: the effect of the label.
template <typename T, typename Accepted>
void report_labels(const kernels::IndexUse& use, const T* labels, int64_t count, int64_t classes, const char* outcome,
                   Accepted accepted) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = class_of(labels[i]);
    if ((label >= 0 && label < classes) || accepted(label)) continue;
    const bool whole = label != -1 || labels[i] == T(-1);
    return kernels::report_out_of_range(use,
                                        whole ? std::to_string(label) : std::to_string(static_cast<double>(labels[i])),
                                        i, kernels::Bounds::index(classes), outcome);
  }
}

}  // namespace hybridnet::ops
