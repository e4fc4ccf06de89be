// Arithmetic on sizes from users: an error if a sum or a product is larger than any array can be.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet {

// For sizes >= 0. Throw ShapeError above kMaxElements; `argument` is the parameter or input to name.
int64_t checked_times(int64_t a, int64_t b, const char* argument = "");
int64_t checked_plus(int64_t a, int64_t b, const char* argument = "");

}  // namespace hybridnet
