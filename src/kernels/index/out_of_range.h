// Indices, labels and lengths outside their bounds, which MXNet accepts silently: the result stays MXNet's, and the
// operator warns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// The operator and the name of its input that contains the index.
struct IndexUse {
  const char* op;
  const char* input;
};

// The range of numbers that an operator accepts, and the noun for them.
struct Bounds {
  int64_t low, high;
  const char* noun;
  static Bounds index(int64_t size) { return {0, size - 1, "index"}; }
  static Bounds length(int64_t low, int64_t high) { return {low, high, "length"}; }
};

// Warns that the number at this position of its tensor (in row-major order) is out of bounds, once for each operator
// and line of the program (or node of a model if the line is unknown). outcome says how the operator treats the number:
// "2 is used for it". With HYBRIDNET_STRICT=1 throws IndexError instead.
[[gnu::cold]] void report_out_of_range(const IndexUse& use, std::string_view given, int64_t position,
                                       const Bounds& bounds, std::string_view outcome);

// Reports the first of these numbers that is out of bounds. outcome: null if the nearest valid number is used.
// first_position: the position of numbers[0] in its tensor.
void report_numbers(const IndexUse& use, const int64_t* numbers, int64_t count, const Bounds& bounds,
                    const char* outcome = nullptr, int64_t first_position = 0);

// False if report_out_of_range() would do nothing, because it has already warned: callers whose texts need memory check
// this first.
[[gnu::cold]] bool may_report_out_of_range(const IndexUse& use);

// Warns, once for each operator and line, that an output of this dtype cannot hold all positions up to `largest`, which
// are rounded or wrap as in MXNet. With HYBRIDNET_STRICT=1 throws DTypeError instead. fix: how a user gets exact ones.
// unit: all positions are multiples of this power of two, so that a floating dtype holds larger ones.
void report_inexact_positions(const char* op, DType dtype, int64_t largest, const char* fix, int64_t unit = 1);

// The number as text; "nan" for the number that Indices stores for NaN.
std::string index_text(int64_t index);

}  // namespace hybridnet::kernels
