// Reductions over any set of axes. float32 and half sums run in float64, integers in int64, in blocks fixed by the
// shape alone: results have the same bits for any number of threads.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

enum class Reduction : int { kSum, kNansum, kProd, kNanprod, kMax, kMin, kSumAbs, kSumSquares, kCount };

// The operation on a finished accumulator before it is stored.
enum class Finish : int { kNone, kDivide, kSqrt };

// out = reduction of in over the axes whose bit in `axes` is set. out contains the kept sizes in order. kDivide divides
// by the number of reduced elements (floating: NaN if there are none; integers: rounded toward zero, 0 if there are
// none). Max and min of no elements are the smallest and largest value of the dtype; NaN propagates. Splits over cores.
void reduce(Reduction reduction, Finish finish, DType dtype, const void* in, const Shape& shape, uint32_t axes,
            DType out_dtype, void* out);

// ---- Interface between reduce.cc and the loops of reduce_loops.cc
struct ReduceLoops {
  DType accumulator = DType::kUnknown;
  // acc[r] = reduction of row r of `length` contiguous elements, overwritten.
  void (*rows)(const void* in, int64_t count, int64_t length, void* acc) = nullptr;
  // acc[j] is combined with element j of every row; rows are `stride` elements apart; width <= kMaxWidth.
  void (*columns)(const void* in, int64_t count, int64_t stride, int64_t width, void* acc) = nullptr;
  // The same for rows of accumulators.
  void (*merge)(const void* in, int64_t count, int64_t stride, int64_t width, void* acc) = nullptr;
  void (*clear)(void* acc, int64_t n) = nullptr;
  static constexpr int64_t kMaxWidth = 512;
};
using ReduceTable = ReduceLoops[static_cast<int>(Reduction::kCount)][kDTypeCodes];
void fill_reduce(ReduceTable& table);

}  // namespace hybridnet::kernels
