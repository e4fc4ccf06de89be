#include "ops/elementwise/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_elementwise(OpRegistry& ops) {
  register_copies(ops);
  register_cast(ops);
  register_exponentials(ops);
  register_powers(ops);
  register_signs(ops);
  register_rectifiers(ops);
  register_elemwise_arithmetic(ops);
  register_scalar_arithmetic(ops);
  register_scalar_comparisons(ops);
  register_comparisons(ops);
  register_add_n(ops);
  register_where(ops);
  register_trigonometry(ops);
  register_rounding(ops);
  register_special(ops);
  register_elemwise_extremes(ops);
  register_scalar_extremes(ops);
  register_piecewise(ops);
  register_activation(ops);
  register_losses(ops);
  register_quadratic(ops);
  register_leaky_relu(ops);
  register_mixed_precision(ops);
}

}  // namespace hybridnet::ops
