// Largest and smallest elements.
#include "hybridnet/op.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {
using kernels::Reduction;

const OpRef kEqual{"_equal"};

// Every element that equals the extreme gets the whole gradient, which follows MXNet.
Values extreme_gradient(const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const uint32_t axes = reduced_axes(p.axis, p.exclude, shape.ndim());
  const Value chosen = call(kEqual, {g.input(0), spread(g.output(0), shape, axes)});
  return {spread(g.output_grad(0), shape, axes) * chosen};
}

void infer_extreme(const ReduceParams& p, InferContext& c) {
  infer_reduce(p, c);
  const Shape& in = c.in_shape(0);
  if (!in.known()) return;
  const uint32_t axes = reduced_axes(p.axis, p.exclude, in.ndim());
  if (reduced_count(in, axes) == 0 && c.out_shape(0).size() != 0) {
    throw ShapeError({.input = "data",
                      .expected = "at least one element along the reduced axes",
                      .given = in.str(),
                      .because = "the largest or smallest of no elements is not defined"});
  }
}

}  // namespace

void register_extremes(OpRegistry& ops) {
  reduction<Reduction::kMax>(ops, "max", "Largest element over axes. The result is NaN if any element is NaN.")
      .alias("max_axis")
      .infer(infer_extreme)
      .gradient(extreme_gradient, Saves::all());
  reduction<Reduction::kMin>(ops, "min", "Smallest element over axes. The result is NaN if any element is NaN.")
      .alias("min_axis")
      .infer(infer_extreme)
      .gradient(extreme_gradient, Saves::all());
}

}  // namespace hybridnet::ops
