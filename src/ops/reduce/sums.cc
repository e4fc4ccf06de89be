// Sums and means.
#include "hybridnet/op.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {
using kernels::Finish;
using kernels::Reduction;

const OpRef kEqual{"_equal"};

uint32_t axes_of(const ReduceParams& p, const GradientContext& g) {
  return reduced_axes(p.axis, p.exclude, g.input_spec(0).shape.ndim());
}

Values sum_gradient(const ReduceParams& p, const GradientContext& g) {
  return {spread(g.output_grad(0), g.input_spec(0).shape, axes_of(p, g))};
}

Values mean_gradient(const ReduceParams& p, const GradientContext& g) {
  const Shape& shape = g.input_spec(0).shape;
  const uint32_t axes = axes_of(p, g);
  const auto count = static_cast<double>(reduced_count(shape, axes));
  return {spread(g.output_grad(0) / count, shape, axes)};
}

// NaN elements have no gradient: x == x is 1 if x is not NaN.
Values nansum_gradient(const ReduceParams& p, const GradientContext& g) {
  const Value x = g.input(0);
  return {spread(g.output_grad(0), g.input_spec(0).shape, axes_of(p, g)) * call(kEqual, {x, x})};
}

}  // namespace

void register_sums(OpRegistry& ops) {
  reduction<Reduction::kSum>(ops, "sum", "Sum over axes. float32 is summed in float64, integers in int64.")
      .alias("sum_axis")
      .alias("_sparse_sum")
      .gradient(sum_gradient, Saves::nothing())
      .keeps_zeros()
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kSums)
      .sample(std::vector<Shape>{{0, 4}}, {{"axis", "0"}});
  reduction<Reduction::kSum, Finish::kDivide>(ops, "mean", "Mean over axes.")
      .alias("_sparse_mean")
      .gradient(mean_gradient, Saves::nothing())
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kMeans);
  reduction<Reduction::kSumSquares>(ops, "_square_sum", "Sum of squares over axes.")
      .gradient(
          [](const ReduceParams& p, const GradientContext& g) -> Values {
            return {spread(g.output_grad(0) * 2.0, g.input_spec(0).shape, axes_of(p, g)) * g.input(0)};
          },
          Saves::all_inputs())
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kSquareSums, SparseGradient::kOwn);
  reduction<Reduction::kNansum>(ops, "nansum", "Sum over axes; NaN counts as 0.")
      .gradient(nansum_gradient, Saves::all_inputs())
      .amp(AmpType::kFloat);
}

}  // namespace hybridnet::ops
