// Products.
#include "ops/reduce/products.h"

#include "hybridnet/op.h"

namespace hybridnet::ops {
namespace {
using kernels::Reduction;

const OpRef kEqual{"_equal"}, kEqualScalar{"_equal_scalar"}, kProd{"prod"};

Value is_equal(const Value& x, double s) { return call(kEqualScalar, {x}, {{"scalar", s}}); }

// Each element's gradient is the product of the others. With zeros in the product only the zero of a group that has a
// single one gets any; so zeros are replaced by ones, multiplied, and the cases told apart by the number of zeros.
Value product_of_others(const Value& x, const Shape& shape, uint32_t axes) {
  const Tuple list = axes_tuple(axes);
  if (list.ndim() == 0) return ones_like(x);
  const Value zero = is_equal(x, 0.0);
  const Value nonzero = where(zero, ones_like(x), x);
  const Value product = spread(call(kProd, {nonzero}, {{"axis", AttrValue(list)}, {"keepdims", true}}), shape, axes);
  const Value zeros_here = spread(sum(zero, list, true), shape, axes);
  const Value others_without_zero = product / nonzero * is_equal(zeros_here, 0.0);
  return others_without_zero + product * zero * is_equal(zeros_here, 1.0);
}

template <Value (*kGradient)(const Value&, const Value&, const Shape&, uint32_t)>
Values gradient_of(const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  return {kGradient(g.input(0), g.output_grad(0), shape, reduced_axes(p.axis, p.exclude, shape.ndim()))};
}

}  // namespace

Value product_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes) {
  return spread(dy, shape, axes) * product_of_others(x, shape, axes);
}

Value nanproduct_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes) {
  const Value is_number = call(kEqual, {x, x});
  return spread(dy, shape, axes) * product_of_others(where(is_number, x, ones_like(x)), shape, axes) * is_number;
}

void register_products(OpRegistry& ops) {
  reduction<Reduction::kProd>(ops, "prod", "Product over axes.")
      .gradient(gradient_of<product_gradient>, Saves::all_inputs());
  reduction<Reduction::kNanprod>(ops, "nanprod", "Product over axes; NaN counts as 1.")
      .gradient(gradient_of<nanproduct_gradient>, Saves::all_inputs());
}

}  // namespace hybridnet::ops
