// Indices, labels and lengths outside their bounds that MXNet accepts without a word: the result stays MXNet's, and the
// operator says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hybridnet::kernels {

// Which input of which operator holds the index.
struct IndexUse {
  const char* op;
  const char* input;
};

// The numbers from low to high, which an operator accepts, and what they are.
struct Bounds {
  int64_t low, high;
  const char* noun;
  static Bounds index(int64_t size) { return {0, size - 1, "index"}; }
  static Bounds length(int64_t low, int64_t high) { return {low, high, "length"}; }
};

// Warns, once for each operator and line of the program (node of a model where no line is known), that the number at
// this position of its tensor (counted in row-major order) is out of bounds; outcome says what it does: "2 is used for
// it". With HYBRIDNET_STRICT=1 it throws IndexError instead.
[[gnu::cold]] void report_out_of_range(const IndexUse& use, std::string_view given, int64_t position,
                                       const Bounds& bounds, std::string_view outcome);

// Reports the first of these numbers that is out of bounds. outcome: null where the nearest number within is used.
// first_position: of numbers[0] in its tensor.
void report_numbers(const IndexUse& use, const int64_t* numbers, int64_t count, const Bounds& bounds,
                    const char* outcome = nullptr, int64_t first_position = 0);

// False where that would do nothing, because it was said: asked first by callers whose texts take memory.
[[gnu::cold]] bool may_report_out_of_range(const IndexUse& use);

// The number as text; what Indices makes of NaN is "nan".
std::string index_text(int64_t index);

}  // namespace hybridnet::kernels
