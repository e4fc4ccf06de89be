// Sums of squares that are bit-equal for any number of threads.
#pragma once

#include <algorithm>

#include "hybridnet/base.h"
#include "hybridnet/threads.h"
#include "storage/temporary.h"

namespace hybridnet::ops {

template <typename T>
double sum_squares(const T* data, int64_t n) {
  constexpr int64_t kPiece = 4096;
  Temporary<double> sums(static_cast<size_t>((n + kPiece - 1) / kPiece));
  parallel_for(static_cast<int64_t>(sums.size()), 1250.0, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      double sum = 0;
      for (int64_t i = piece * kPiece; i < std::min(n, (piece + 1) * kPiece); ++i) {
        const double value = static_cast<double>(data[i]);
        sum += value * value;
      }
      sums[static_cast<size_t>(piece)] = sum;
    }
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace hybridnet::ops
