#include "base/checked_size.h"

#include <string>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

[[noreturn]] void throw_too_large(int64_t a, const char* sign, int64_t b) {
  throw ShapeError({.expected = "a size below 2**63", .given = std::to_string(a) + sign + std::to_string(b)});
}

}  // namespace

int64_t checked_times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw_too_large(a, " * ", b);
  return product;
}

int64_t checked_plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw_too_large(a, " + ", b);
  return sum;
}

}  // namespace hybridnet
