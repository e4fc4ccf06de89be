// Products.
#include "ops/reduce/products.h"

#include "hybridnet/op.h"

namespace hybridnet::ops {
namespace {
using kernels::Reduction;

const OpRef kEqual{"_equal"};

// For each element of a row, the product of the other elements. The two halves of the row are multiplied element by
// element, the recursion computes the products of the others in this shorter row, and each is multiplied by the
// element's partner. There is no division, so zeros need no special case, and every derivative is correct; the number
// of multiplications is proportional to the row.
Value products_of_others(const Value& rows) {
  const int64_t size = spec_of(rows).shape[1], half = size / 2;
  if (size == 1) return ones_like(rows);
  const Value left = slice_axis(rows, 1, 0, half), right = slice_axis(rows, 1, half, 2 * half);
  if (size == 2) return concat({right, left}, 1);
  const Value pairs = left * right;
  if (size == 2 * half) {
    const Value others = products_of_others(pairs);
    return concat({others * right, others * left}, 1);
  }
  const Value others = products_of_others(concat({pairs, slice_axis(rows, 1, 2 * half, size)}, 1));
  const Value of_pairs = slice_axis(others, 1, 0, half);
  return concat({of_pairs * right, of_pairs * left, slice_axis(others, 1, half, half + 1)}, 1);
}

// The permutation that moves kept axes before reduced ones, and its inverse.
struct AxisOrder {
  Tuple there, back;
  Shape shape;  // after `there`
  int64_t rows = 1, columns = 1;
  bool is_as_it_was = true;
};
AxisOrder reduced_last(const Shape& shape, uint32_t axes) {
  std::vector<int> order;
  for (const bool reduced : {false, true})
    for (int i = 0; i < shape.ndim(); ++i)
      if ((axes >> i & 1) == (reduced ? 1u : 0u)) order.push_back(i);
  AxisOrder result;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int axis = order[i];
    result.there.push_back(axis);
    back[static_cast<size_t>(axis)] = static_cast<int64_t>(i);
    result.shape.push_back(shape[axis]);
    (axes >> axis & 1 ? result.columns : result.rows) *= shape[axis];
    result.is_as_it_was = result.is_as_it_was && axis == static_cast<int>(i);
  }
  for (const int64_t place : back) result.back.push_back(place);
  return result;
}

Value product_of_others(const Value& x, const Shape& shape, uint32_t axes) {
  if (axes_tuple(axes).ndim() == 0 || shape.size() == 0) return ones_like(x);
  const AxisOrder order = reduced_last(shape, axes);
  const Value ordered = order.is_as_it_was ? x : transpose(x, order.there);
  const Value others = reshape(products_of_others(reshape(ordered, Shape{order.rows, order.columns})), order.shape);
  return order.is_as_it_was ? others : transpose(others, order.back);
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
      .gradient(gradient_of<product_gradient>, Saves::all_inputs())
      .amp(AmpType::kFloat);
  reduction<Reduction::kNanprod>(ops, "nanprod", "Product over axes; NaN counts as 1.")
      .gradient(gradient_of<nanproduct_gradient>, Saves::all_inputs())
      .amp(AmpType::kFloat);
}

}  // namespace hybridnet::ops
