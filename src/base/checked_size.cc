#include "base/checked_size.h"

#include <string>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

int64_t checked(bool overflow, int64_t result, int64_t a, const char* sign, int64_t b, const char* argument) {
  if (!overflow && result <= kMaxElements) return result;
  throw ShapeError({.input = argument,
                    .expected = "a size of at most 2**56",
                    .given = std::to_string(a) + sign + std::to_string(b)});
}

}  // namespace

int64_t checked_times(int64_t a, int64_t b, const char* argument) {
  int64_t product = 0;
  const bool overflow = __builtin_mul_overflow(a, b, &product);
  return checked(overflow, product, a, " * ", b, argument);
}

int64_t checked_plus(int64_t a, int64_t b, const char* argument) {
  int64_t sum = 0;
  const bool overflow = __builtin_add_overflow(a, b, &sum);
  return checked(overflow, sum, a, " + ", b, argument);
}

}  // namespace hybridnet
