// Copies elements between two strided layouts of equal logical shape: the basis of transpose, slice, reverse, tile,
// concat, split and their gradients. Depends on element sizes only, never on dtypes.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// memcpy over as many cores as is worthwhile. The two ranges are disjoint or the same.
void copy_bytes(const void* src, void* dst, int64_t bytes);

// memset to zero over as many cores as is worthwhile.
void zero_bytes(void* dst, int64_t bytes);

// Describes the copy axis by axis, outermost first, then runs it. Strides are in elements; those of the source may be
// zero (broadcast) or negative (reverse). Destination elements must be distinct.
class StridedCopy {
 public:
  static constexpr int kMaxAxes = 3 * kMaxDims;

  void add_axis(int64_t size, int64_t src_stride, int64_t dst_stride);
  void run(const void* src, void* dst, int64_t element_bytes) const;

 private:
  struct Axis {
    int64_t size, src, dst;
  };
  struct Program;
  Axis axes_[kMaxAxes];
  int count_ = 0;
};

// Strides, in elements, of a contiguous row-major tensor: strides[i] belongs to axis i.
struct Strides {
  explicit Strides(const Shape& shape);
  int64_t operator[](int axis) const { return values[axis]; }
  int64_t values[kMaxDims];
};

}  // namespace hybridnet::kernels
