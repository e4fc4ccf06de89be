// The position of the largest or smallest element along an axis.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

enum class Extreme : int { kMax, kMin };

// in: (outer, length, inner), length >= 1. out[o, k]: the first position of the extreme along the middle axis; the
// first NaN if there is one. Splits over cores; the same bits for any number of threads.
void arg_extreme(Extreme extreme, DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner,
                 DType out_dtype, void* out);

// ---- Interface between arg_extreme.cc and arg_extreme_loops.cc, for float32, float64, int32 and int64.
struct ArgExtremeLoops {
  static constexpr int64_t kMaxWidth = 512;
  static constexpr int64_t kMaxCount = int64_t{1} << 30;  // positions fit in 32 bits
  // The extreme of `count` contiguous elements and its first position.
  void (*row)(const void* in, int64_t count, void* value, int64_t* position) = nullptr;
  // The same for each of `width` columns; rows lie `stride` elements apart.
  void (*columns)(const void* in, int64_t count, int64_t stride, int64_t width, void* values,
                  int64_t* positions) = nullptr;
  // Replaces values and positions by the candidates that beat them; the candidates have later positions.
  void (*merge)(const void* candidates, const int64_t* their_positions, int64_t n, void* values,
                int64_t* positions) = nullptr;
};
using ArgExtremeTable = ArgExtremeLoops[2][kDTypeCodes];
void fill_arg_extreme(ArgExtremeTable& table);

}  // namespace hybridnet::kernels
