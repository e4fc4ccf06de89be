// Products.
#include "hybridnet/op.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {
using kernels::Reduction;

const OpRef kEqual{"_equal"}, kEqualScalar{"_equal_scalar"}, kProd{"prod"};

Value is_equal(const Value& x, double s) { return call(kEqualScalar, {x}, {{"scalar", s}}); }

// Each element's gradient is the product of the others. With zeros in the product only the zero of a group that has a
// single one gets any; so zeros are replaced by ones, multiplied, and the cases told apart by the number of zeros.
Value product_of_others(const Value& x, const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const uint32_t axes = reduced_axes(p.axis, p.exclude, shape.ndim());
  const Tuple list = axes_tuple(axes);
  if (list.ndim() == 0) return ones_like(x);
  const Value zero = is_equal(x, 0.0);
  const Value nonzero = where(zero, ones_like(x), x);
  const Value product = spread(call(kProd, {nonzero}, {{"axis", AttrValue(list)}, {"keepdims", true}}), shape, axes);
  const Value zeros_here = spread(sum(zero, list, true), shape, axes);
  const Value others_without_zero = product / nonzero * is_equal(zeros_here, 0.0);
  return others_without_zero + product * zero * is_equal(zeros_here, 1.0);
}

Values prod_gradient(const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const Value dy = spread(g.output_grad(0), shape, reduced_axes(p.axis, p.exclude, shape.ndim()));
  return {dy * product_of_others(g.input(0), p, g)};
}

Values nanprod_gradient(const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const Value x = g.input(0), is_number = call(kEqual, {x, x});
  const Value dy = spread(g.output_grad(0), shape, reduced_axes(p.axis, p.exclude, shape.ndim()));
  return {dy * product_of_others(where(is_number, x, ones_like(x)), p, g) * is_number};
}

}  // namespace

void register_products(OpRegistry& ops) {
  reduction<Reduction::kProd>(ops, "prod", "Product over axes.").gradient(prod_gradient, Saves::all_inputs());
  reduction<Reduction::kNanprod>(ops, "nanprod", "Product over axes; NaN counts as 1.")
      .gradient(nanprod_gradient, Saves::all_inputs());
}

}  // namespace hybridnet::ops
