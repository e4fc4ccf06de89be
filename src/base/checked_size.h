// Arithmetic on sizes that users give: an error where a sum or a product would wrap around at 2**63.
#pragma once

#include <cstdint>

namespace hybridnet {

// Of sizes that are not negative. Throw ShapeError at 2**63 and above.
int64_t checked_times(int64_t a, int64_t b);
int64_t checked_plus(int64_t a, int64_t b);

}  // namespace hybridnet
