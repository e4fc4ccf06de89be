// Registration functions of src/ops/elementwise.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_copies(OpRegistry& ops);
void register_cast(OpRegistry& ops);
void register_exponentials(OpRegistry& ops);
void register_powers(OpRegistry& ops);
void register_signs(OpRegistry& ops);
void register_rectifiers(OpRegistry& ops);
void register_elemwise_arithmetic(OpRegistry& ops);
void register_scalar_arithmetic(OpRegistry& ops);
void register_scalar_comparisons(OpRegistry& ops);
void register_comparisons(OpRegistry& ops);
void register_add_n(OpRegistry& ops);
void register_where(OpRegistry& ops);
void register_trigonometry(OpRegistry& ops);
void register_rounding(OpRegistry& ops);
void register_special(OpRegistry& ops);
void register_elemwise_extremes(OpRegistry& ops);
void register_scalar_extremes(OpRegistry& ops);
void register_piecewise(OpRegistry& ops);
void register_activation(OpRegistry& ops);
void register_losses(OpRegistry& ops);
void register_quadratic(OpRegistry& ops);
void register_leaky_relu(OpRegistry& ops);
void register_mixed_precision(OpRegistry& ops);

}  // namespace hybridnet::ops
