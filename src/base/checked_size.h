// Arithmetic on sizes that users give: an error where a sum or a product is larger than any array can be.
#pragma once

#include <cstdint>

namespace hybridnet {

// No tensor has more elements than this, zeros among its sizes left out: no machine addresses as much, and sizes,
// strides and small multiples of them fit into int64_t.
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

// For sizes that are not negative. Throw ShapeError above kMaxElements; `argument` is the parameter or input to name.
int64_t checked_times(int64_t a, int64_t b, const char* argument = "");
int64_t checked_plus(int64_t a, int64_t b, const char* argument = "");

}  // namespace hybridnet
