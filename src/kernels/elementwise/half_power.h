// x^0.5 without logarithms, with the special values of powers.
#pragma once

#include "kernels/elementwise/pointwise.h"

namespace hybridnet::kernels {

const SpanLoops& half_power_loops();  // floats only

}  // namespace hybridnet::kernels
