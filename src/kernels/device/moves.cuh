// Fills and copies between strided layouts. Elements are words: their dtype does not matter.
#pragma once

#include "kernels/device/kernel.cuh"
#include "kernels/device/moves_arguments.h"

namespace hybridnet::device {

struct alignas(16) Word16 {
  uint64_t v[2];
};

template <class Word>
__device__ void fill(const FillArguments& a) {
  Word* out = static_cast<Word*>(a.out);
  for (int64_t i = first(); i < a.n; i += step()) out[i] = static_cast<Word>(a.bits);
}

template <class Word>
__device__ void copy(const CopyArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) static_cast<Word*>(a.dst)[i] = static_cast<const Word*>(a.src)[i];
}

// One thread for each element, in the order of the destination. Index: 32 bits if the copy is small, for division is
// slow. Transposed axes are read with a stride; tiles in shared memory belong here once that matters.
template <class Word, class Index>
__device__ void copy_strided(const StridedArguments& a) {
  const Word* src = static_cast<const Word*>(a.src);
  Word* dst = static_cast<Word*>(a.dst);
  for (int64_t i = first(); i < a.n; i += step()) {
    Index rest = static_cast<Index>(i);
    int64_t from = 0, to = 0;
    for (int axis = a.count - 1; axis > 0; --axis) {
      const Index size = static_cast<Index>(a.axes[axis].size);
      const Index quotient = rest / size;
      const int64_t at = static_cast<int64_t>(rest - quotient * size);
      from += at * a.axes[axis].src;
      to += at * a.axes[axis].dst;
      rest = quotient;
    }
    from += static_cast<int64_t>(rest) * a.axes[0].src;
    to += static_cast<int64_t>(rest) * a.axes[0].dst;
    dst[to] = src[from];
  }
}

}  // namespace hybridnet::device
