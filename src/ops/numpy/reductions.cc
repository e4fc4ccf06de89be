// Reductions of NumPy's interface: a reduction of all axes returns a scalar, a sum of bools counts, a mean of
// integers is a float.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/reduce.h"
#include "ops/reduce/products.h"

namespace hybridnet::ops {
namespace {

const OpRef kSum{"sum"}, kMean{"mean"}, kProd{"prod"}, kMax{"max"}, kMin{"min"}, kPlusScalar{"_plus_scalar"},
    kMulScalar{"_mul_scalar"}, kMaximumScalar{"_maximum_scalar"}, kMinimumScalar{"_minimum_scalar"}, kSquare{"square"},
    kEqual{"_equal"}, kNansum{"nansum"}, kNanprod{"nanprod"}, kSub{"broadcast_sub"}, kSqrt{"sqrt"};

struct SumParams {
  std::optional<Tuple> axis;
  std::optional<DType> dtype;
  bool keepdims;
  std::optional<double> initial;
  static void describe(ParamSchema<SumParams>& schema) {
    describe_axes(schema, &SumParams::axis, &SumParams::keepdims);
    schema.field("dtype", &SumParams::dtype).none_by_default().doc("Dtype of the sum and of the result.");
    schema.field("initial", &SumParams::initial).none_by_default().doc("Value that the reduction starts with.");
  }
};

struct ExtremeParams {
  std::optional<Tuple> axis;
  bool keepdims;
  std::optional<double> initial;
  static void describe(ParamSchema<ExtremeParams>& schema) {
    describe_axes(schema, &ExtremeParams::axis, &ExtremeParams::keepdims);
    schema.field("initial", &ExtremeParams::initial)
        .none_by_default()
        .doc("Value that is compared with those of the array.");
  }
};

struct SpreadParams {
  std::optional<Tuple> axis;
  std::optional<DType> dtype;
  int32_t ddof;
  bool keepdims;
  static void describe(ParamSchema<SpreadParams>& schema) {
    describe_axes(schema, &SpreadParams::axis, &SpreadParams::keepdims);
    schema.field("dtype", &SpreadParams::dtype).none_by_default().doc("Dtype of the computation and of the result.");
    schema.field("ddof", &SpreadParams::ddof).default_value(0).doc("The divisor is the number of elements minus ddof.");
  }
};

Value with_initial(const OpRef& scalar_op, const Value& a, const std::optional<double>& initial) {
  return initial ? cast(call(scalar_op, {a}, {{"scalar", *initial}}), dtype_of(a)) : a;
}

// The dtype of the reduction: a narrower float dtype applies to the result only, so that it is rounded once.
DType reduced_in(DType from, DType wanted) {
  const bool narrows = is_floating(from) && is_floating(wanted) && dtype_size(from) > dtype_size(wanted);
  return narrows ? from : wanted;
}

Values combined(const OpRef& op, const OpRef& with_scalar, const SumParams& p, const Value& data) {
  const DType from = dtype_of(data);
  const DType wanted = p.dtype ? *p.dtype : from == DType::kBool ? DType::kInt64 : from;
  const Value result = reduce(op, cast(data, reduced_in(from, wanted)), p.axis, p.keepdims);
  return {cast(with_initial(with_scalar, result, p.initial), wanted)};
}

Values sum_rule(const SumParams& p, const Values& in) { return combined(kSum, kPlusScalar, p, in[0]); }

Values prod_rule(const SumParams& p, const Values& in) { return combined(kProd, kMulScalar, p, in[0]); }

// Reduces without NaN: integers contain no NaN, and NaN is replaced in floats before they are cast to integers.
Values without_nan(const SumParams& p, const Value& data, const OpRef& skipping, const OpRef& plain,
                   const OpRef& with_scalar, Value (*neutral)(const Value&)) {
  if (!is_floating(dtype_of(data))) {
    SumParams wide = p;  // NumPy's dtype rules: these functions are not among MXNet's own operators
    if (!wide.dtype) wide.dtype = DType::kInt64;
    return combined(plain, with_scalar, wide, data);
  }
  const bool stays_floating = !p.dtype || is_floating(*p.dtype);
  if (stays_floating && !reduces_nothing(p.axis)) return combined(skipping, with_scalar, p, data);
  const Value numbers = where(call(kEqual, {data, data}), data, neutral(data));
  return combined(plain, with_scalar, p, numbers);
}

Values mean_rule(const SumParams& p, const Values& in) {
  const DType wanted = p.dtype ? *p.dtype : floating(dtype_of(in[0]));
  const DType from = dtype_of(in[0]);
  const Value mean = reduce(kMean, cast(in[0], reduced_in(from, floating(wanted))), p.axis, p.keepdims);
  return {cast(with_initial(kPlusScalar, mean, p.initial), wanted)};
}

[[noreturn]] void no_extreme(const Shape& shape) {
  throw ShapeError({.input = "a",
                    .expected = "at least one element along the reduced axes",
                    .given = shape.str(),
                    .because = "no elements have no largest or smallest one",
                    .fix = "pass initial"});
}

bool has_no_elements(const Shape& shape, const Axes& axis) {
  return shape.known() && reduced_count(shape, reduced_axes(axis, false, shape.ndim())) == 0;
}

Values extreme_rule(const ExtremeParams& p, const Values& in, const OpRef& classic, const OpRef& with_scalar) {
  const DType from = dtype_of(in[0]);
  const Shape& shape = spec_of(in[0]).shape;
  if (!reduces_nothing(p.axis) && !p.initial && has_no_elements(shape, p.axis)) no_extreme(shape);
  const Value found = reduce(classic, cast(in[0], arithmetic(from)), p.axis, p.keepdims);
  return {cast(with_initial(with_scalar, found, p.initial), from)};
}

// The mean of squared deviations. If there are fewer elements than ddof, the divisor is 0, which follows NumPy.
Value variance(const SpreadParams& p, const Value& data) {
  const Shape& shape = spec_of(data).shape;
  const Value centered = call(kSub, {data, reduce(kMean, data, p.axis, true)});
  const Value mean = reduce(kMean, call(kSquare, {centered}), p.axis, p.keepdims);
  if (p.ddof == 0) return mean;
  const int64_t count = reduces_nothing(p.axis) ? 1 : reduced_count(shape, reduced_axes(p.axis, false, shape.ndim()));
  const auto left = static_cast<double>(std::max<int64_t>(count - p.ddof, 0));
  return mean * (static_cast<double>(count) / left);
}

template <bool kRoot>
Values spread_rule(const SpreadParams& p, const Values& in) {
  const DType wanted = p.dtype ? *p.dtype : floating(dtype_of(in[0]));
  const Value found = variance(p, cast(in[0], reduced_in(dtype_of(in[0]), floating(wanted))));
  return {cast(kRoot ? call(kSqrt, {found}) : found, wanted)};
}

// ---- sums, means and extremes as operators of their own: a call is one kernel, and shapes are NumPy's.
template <typename P>
void infer_literal(const P& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const uint32_t axes = reduced_axes(p.axis, false, in.ndim());
  if (p.keepdims) return c.set_out_shape(0, kept_shape(in, axes));
  Shape out = Shape::scalar();
  for (int i = 0; i < in.ndim(); ++i)
    if (!(axes >> i & 1u)) out.push_back(in[i]);
  c.set_out_shape(0, out);
}

// Computes the gradient of x, whose shape is `shape`, from the gradient dy of its reduction over axes (bits).
using ReductionGradient = Value (*)(const Value& x, const Value& dy, const Shape& shape, uint32_t axes);

Value sum_gradient(const Value&, const Value& dy, const Shape& shape, uint32_t axes) { return spread(dy, shape, axes); }

Value mean_gradient(const Value&, const Value& dy, const Shape& shape, uint32_t axes) {
  return spread(dy / static_cast<double>(reduced_count(shape, axes)), shape, axes);
}

Value nansum_gradient(const Value& x, const Value& dy, const Shape& shape, uint32_t axes) {
  return spread(dy, shape, axes) * call(kEqual, {x, x});
}

template <kernels::Reduction kReduction, kernels::Finish kFinish = kernels::Finish::kNone>
void declare_literal(OpRegistry& ops, const char* name, const char* doc, ReductionGradient gradient, Saves saves) {
  const bool needs_input = saves.inputs != 0;
  ops.declare<SumParams>(name)
      .doc(doc)
      .internal()
      .input("a", "floating array; dtype and initial are not given")
      .output("out", "dtype of a; the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .infer(infer_literal<SumParams>)
      .cpu(
          [](const SumParams& p, const KernelArgs& a) {
            const Shape& shape = *a.in[0].shape;
            kernels::reduce(kReduction, kFinish, a.in[0].dtype, a.in[0].data, shape,
                            reduced_axes(p.axis, false, shape.ndim()), a.out[0].dtype, a.out[0].data);
          },
          kFloating)
      .any_device()
      .gradient(
          [gradient, needs_input](const SumParams& p, const GradientContext& g) -> Values {
            const Shape& shape = g.input_spec(0).shape;
            const uint32_t axes = reduced_axes(p.axis, false, shape.ndim());
            return {gradient(needs_input ? g.input(0) : Value{}, g.output_grad(0), shape, axes)};
          },
          saves)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}, {"keepdims", "True"}});
}

template <kernels::Reduction kReduction>
void declare_literal_extreme(OpRegistry& ops, const char* name, const char* doc) {
  ops.declare<ExtremeParams>(name)
      .doc(doc)
      .internal()
      .input("a", "array of numbers; initial is not given")
      .output("out", "dtype of a; the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .infer([](const ExtremeParams& p, InferContext& c) {
        infer_literal(p, c);
        if (has_no_elements(c.in_shape(0), p.axis)) no_extreme(c.in_shape(0));
      })
      .cpu(
          [](const ExtremeParams& p, const KernelArgs& a) {
            const Shape& shape = *a.in[0].shape;
            kernels::reduce(kReduction, kernels::Finish::kNone, a.in[0].dtype, a.in[0].data, shape,
                            reduced_axes(p.axis, false, shape.ndim()), a.out[0].dtype, a.out[0].data);
          },
          kNumeric)
      .any_device()
      .gradient(
          [](const ExtremeParams& p, const GradientContext& g) -> Values {
            const Shape& shape = g.input_spec(0).shape;
            const uint32_t axes = reduced_axes(p.axis, false, shape.ndim());
            const Value chosen = call(kEqual, {g.input(0), spread(g.output(0), shape, axes)});
            return {spread(g.output_grad(0), shape, axes) * chosen};
          },
          Saves::all())
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}, {"keepdims", "True"}});
}

bool is_plain_extreme(const ExtremeParams& p, std::span<const DType> in) {
  return in[0] != DType::kBool && !p.initial && !reduces_nothing(p.axis);
}

bool is_plain_sum(const SumParams& p, std::span<const DType> in) {
  return is_floating(in[0]) && !p.dtype && !p.initial && !reduces_nothing(p.axis);
}

template <typename P, typename Rule>
auto declare_reduction(OpRegistry& ops, const char* name, const char* doc, Rule rule) {
  auto op = ops.declare<P>(name);
  op.doc(doc)
      .input("a", "array of any shape")
      .output("out", "the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .compose(rule)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}, {"keepdims", "True"}})
      .sample({{2, 3}}, {{"axis", "()"}});
  return op;
}

}  // namespace

void register_numpy_reductions(OpRegistry& ops) {
  using kernels::Reduction;
  declare_literal<Reduction::kSum>(ops, "_sum_to_scalar", "Sum over axes with NumPy's shapes.", sum_gradient,
                                   Saves::nothing());
  declare_literal<Reduction::kSum, kernels::Finish::kDivide>(
      ops, "_mean_to_scalar", "Mean over axes with NumPy's shapes.", mean_gradient, Saves::nothing());
  declare_literal<Reduction::kProd>(ops, "_prod_to_scalar", "Product over axes with NumPy's shapes.", product_gradient,
                                    Saves::all_inputs());
  declare_literal<Reduction::kNansum>(ops, "_nansum_to_scalar", "Sum over axes without NaN, with NumPy's shapes.",
                                      nansum_gradient, Saves::all_inputs());
  declare_literal<Reduction::kNanprod>(ops, "_nanprod_to_scalar", "Product over axes without NaN, with NumPy's shapes.",
                                       nanproduct_gradient, Saves::all_inputs());
  declare_literal_extreme<kernels::Reduction::kMax>(ops, "_max_to_scalar", "Largest element with NumPy's shapes.");
  declare_literal_extreme<kernels::Reduction::kMin>(ops, "_min_to_scalar", "Smallest element with NumPy's shapes.");
  declare_reduction<SumParams>(ops, "_np_sum", "Sum over axes; True counts as 1.", sum_rule)
      .same_as("_sum_to_scalar", is_plain_sum)
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "1.5"}})
      .sample({Shape{0, 3}}, {{"axis", "0"}});
  declare_reduction<SumParams>(ops, "_np_prod", "Product over axes.", prod_rule)
      .same_as("_prod_to_scalar", is_plain_sum)
      .alias("_np_product")
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "1.5"}});
  declare_reduction<SumParams>(ops, "_npi_nansum", "Sum over axes; NaN counts as 0. int64 for integers.",
                               [](const SumParams& p, const Values& in) {
                                 return without_nan(p, in[0], kNansum, kSum, kPlusScalar, zeros_like);
                               })
      .same_as("_nansum_to_scalar", is_plain_sum)
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "1.5"}});
  declare_reduction<SumParams>(ops, "_npi_nanprod", "Product over axes; NaN counts as 1. int64 for integers.",
                               [](const SumParams& p, const Values& in) {
                                 return without_nan(p, in[0], kNanprod, kProd, kMulScalar, ones_like);
                               })
      .same_as("_nanprod_to_scalar", is_plain_sum)
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "1.5"}});
  declare_reduction<SumParams>(ops, "_npi_mean", "Mean over axes; float32 for integers.", mean_rule)
      .same_as("_mean_to_scalar", is_plain_sum);
  declare_reduction<ExtremeParams>(
      ops, "_np_max", "Largest element over axes.",
      [](const ExtremeParams& p, const Values& in) { return extreme_rule(p, in, kMax, kMaximumScalar); })
      .same_as("_max_to_scalar", is_plain_extreme)
      .alias("_np_amax")
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "0.5"}});
  declare_reduction<ExtremeParams>(
      ops, "_np_min", "Smallest element over axes.",
      [](const ExtremeParams& p, const Values& in) { return extreme_rule(p, in, kMin, kMinimumScalar); })
      .same_as("_min_to_scalar", is_plain_extreme)
      .alias("_np_amin")
      .sample({{2, 3}}, {{"axis", "0"}, {"initial", "0.5"}});
  declare_reduction<SpreadParams>(ops, "_npi_var", "Variance over axes; float32 for integers.", spread_rule<false>)
      .mxnet_name("var")
      .sample({{4, 3}}, {{"axis", "0"}, {"ddof", "1"}});
  auto std = ops.declare<SpreadParams>("_npi_std");
  std.doc("Standard deviation over axes; float32 for integers.")
      .input("a", "array of any shape")
      .output("out", "the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .mxnet_name("std")
      .compose(spread_rule<true>)
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "(0, -1)"}, {"keepdims", "True"}})
      .sample({{4, 3}}, {{"axis", "0"}, {"ddof", "1"}});
}

}  // namespace hybridnet::ops
