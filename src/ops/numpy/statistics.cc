// Statistics of NumPy's interface in addition to sums and extremes: any and all, weighted means, percentiles.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/numpy/reduce.h"

namespace hybridnet::ops {
namespace {

const OpRef kSum{"sum"}, kMean{"mean"}, kMax{"max"}, kMin{"min"}, kNotEqualScalar{"_not_equal_scalar"},
    kEqualScalar{"_equal_scalar"}, kMul{"broadcast_mul"}, kAdd{"broadcast_add"}, kSort{"sort"}, kTake{"take"},
    kSqueeze{"squeeze"}, kFloor{"floor"}, kCeil{"ceil"}, kRint{"rint"}, kNotEqual{"broadcast_not_equal"},
    kEqual{"broadcast_equal"}, kClip{"clip"};

// ------------------------------------------------------------------------------------------------------------ any, all
struct TruthParams {
  std::optional<Tuple> axis;
  bool keepdims;
  static void describe(ParamSchema<TruthParams>& schema) {
    describe_axes(schema, &TruthParams::axis, &TruthParams::keepdims);
  }
};

// Without elements, any is false and all is true.
template <bool kAll>
Values truth_rule(const TruthParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  const Value data = cast(in[0], arithmetic(dtype_of(in[0])));
  if (!reduces_nothing(p.axis) && reduced_count(shape, reduced_axes(p.axis, false, shape.ndim())) == 0) {
    const Value none = reduce(kSum, cast(data, DType::kInt32), p.axis, p.keepdims);
    return {cast(kAll ? call(kEqualScalar, {none}, {{"scalar", 0.0}}) : none, DType::kBool)};
  }
  const Value is_true = cast(call(kNotEqualScalar, {data}, {{"scalar", 0.0}}), DType::kInt8);
  return {cast(reduce(kAll ? kMin : kMax, is_true, p.axis, p.keepdims), DType::kBool)};
}

// ------------------------------------------------------------------------------------------------------------- average
struct AverageParams {
  std::optional<Tuple> axis;
  bool returned, weighted;
  static void describe(ParamSchema<AverageParams>& schema) {
    schema.field("axis", &AverageParams::axis).none_by_default().doc("Axis or axes to average over; None: all.");
    schema.field("returned", &AverageParams::returned)
        .default_value(false)
        .doc("Whether to return the sum of the weights, too.");
    schema.field("weighted", &AverageParams::weighted).default_value(true).doc("Whether there are weights.");
  }
};

// The weights of one axis, with trailing axes of size 1 for broadcasting with the array.
Value along_axis(const Value& weights, const AverageParams& p, const Shape& data) {
  const Shape& shape = spec_of(weights).shape;
  if (shape == data) return weights;
  if (shape.ndim() != 1 || !p.axis || p.axis->ndim() != 1 ||
      shape[0] != data[normalize_axis((*p.axis)[0], data.ndim())])
    throw ShapeError({.input = "weights",
                      .expected = "the shape of a, " + data.str() + ", or a weight for each place along one axis",
                      .given = shape.str()});
  Value result = weights;
  for (int i = normalize_axis((*p.axis)[0], data.ndim()) + 1; i < data.ndim(); ++i)
    result = expand_dims(result, spec_of(result).shape.ndim());
  return result;
}

Values average_rule(const AverageParams& p, const Values& in) {
  const DType dtype = floating(promoted(in));
  const Value a = cast(in[0], dtype);
  if (!p.weighted) {
    const Value mean = reduce(kMean, a, p.axis, false);
    if (!p.returned) return {mean};
    return {mean, reduce(kSum, ones_like(a), p.axis, false)};
  }
  const Value weights = along_axis(cast(in[1], dtype), p, spec_of(a).shape);
  const Value total = reduce(kSum, call(kMul, {ones_like(a), weights}), p.axis, false);
  const Value mean = reduce(kSum, call(kMul, {a, weights}), p.axis, false) / total;
  return p.returned ? Values{mean, total} : Values{mean};
}

// ---------------------------------------------------------------------------------------------------------- percentile
enum class Between : int32_t { kLinear, kLower, kHigher, kNearest, kMidpoint };

struct PercentileParams {
  std::optional<Tuple> axis;
  bool keepdims;
  Between interpolation;
  std::optional<double> q_scalar;
  static void describe(ParamSchema<PercentileParams>& schema) {
    describe_axes(schema, &PercentileParams::axis, &PercentileParams::keepdims);
    schema.field("interpolation", &PercentileParams::interpolation)
        .choice("linear", Between::kLinear)
        .choice("lower", Between::kLower)
        .choice("higher", Between::kHigher)
        .choice("nearest", Between::kNearest)
        .choice("midpoint", Between::kMidpoint)
        .default_value("linear")
        .doc("The value between two elements.");
    schema.field("q_scalar", &PercentileParams::q_scalar)
        .none_by_default()
        .range(0, 100)
        .doc("The percentage, instead of the input q.");
  }
};

// Moves the reduced axes to the front as one axis, sorted.
Value sorted_first(const Value& a, const Axes& axis) {
  const Shape shape = spec_of(a).shape;
  if (shape.ndim() == 0) return literal_reshape(a, Shape{1});
  const uint32_t reduced = reduced_axes(axis, false, shape.ndim());
  Tuple order = axes_tuple(reduced);
  const int count = order.ndim();
  Shape merged{-1};
  for (int i = 0; i < shape.ndim(); ++i) {
    if (reduced >> i & 1u) continue;
    order.push_back(i);
    merged.push_back(shape[i]);
  }
  Value first = transpose(a, order);
  if (count > 1) first = literal_reshape(first, merged);
  return call(kSort, {first}, {{"axis", 0}});
}

struct Bracket {
  Value low, high, fraction;  // shape (Q,); fraction: position between low and high, in the data's dtype
};

// Positions of percentages in `count` sorted elements.
Bracket bracket(const Value& percent, int64_t count, Between between, DType dtype) {
  const Value at = call(kClip, {cast(percent, DType::kFloat64) * static_cast<double>(count - 1) / 100.0},
                        {{"a_min", 0.0}, {"a_max", static_cast<double>(count - 1)}});
  const Value low = call(kFloor, {at}), high = call(kCeil, {at});
  const auto only = [](const Value& v) { return Bracket{cast(v, DType::kInt64), {}, {}}; };
  switch (between) {
    case Between::kLower:
      return only(low);
    case Between::kHigher:
      return only(high);
    case Between::kNearest: {
      // Halves are rounded to the even position.
      const Value even = call(kRint, {at / 2.0}) * 2.0, up = call(kFloor, {at + 0.5});
      const Value is_half = call(kEqual, {at - low, ones_like(at) * 0.5});
      return only(where(is_half, even, up));
    }
    case Between::kMidpoint:
      return {cast(low, DType::kInt64), cast(high, DType::kInt64), cast(ones_like(at) * 0.5, dtype)};
    case Between::kLinear:
      break;
  }
  return {cast(low, DType::kInt64), cast(high, DType::kInt64), cast(at - low, dtype)};
}

Value rows(const Value& sorted, const Value& positions) {
  return call(kTake, {sorted, positions}, {{"axis", 0}, {"mode", "clip"}});
}

// (Q,) with trailing axes of size 1.
Value trailing(Value v, int ndim) {
  while (spec_of(v).shape.ndim() < ndim) v = expand_dims(v, spec_of(v).shape.ndim());
  return v;
}

// NaN for each slice that contains one: the sort moves it to the end.
Value with_nans(const Value& found, const Value& sorted) {
  if (!is_floating(dtype_of(sorted))) return found;
  const int64_t size = spec_of(sorted).shape[0];
  const Value last = slice_axis(sorted, 0, size - 1, size);
  const Value nan_or_zero = where(call(kNotEqual, {last, last}), last, zeros_like(last));
  return call(kAdd, {found, nan_or_zero});
}

// Interpolates between low and high by `fraction`. Infinities have no difference: they are weighted one by one, and a
// weight of 0 ignores its operand.
Value part_way(const Value& low, const Value& high, const Value& fraction) {
  const Value step = high - low;
  const Value is_finite = call(kEqual, {call(kMul, {step, zeros_like(step)}), zeros_like(step)});
  const Value stepped = call(kAdd, {low, call(kMul, {step, fraction})});
  const Value weighed = call(kAdd, {call(kMul, {low, ones_like(fraction) - fraction}), call(kMul, {high, fraction})});
  const Value between = where(is_finite, stepped, weighed);
  const Value is_low = call(kEqual, {call(kMul, {ones_like(step), fraction}), zeros_like(step)});
  return where(is_low, low, where(call(kEqual, {low, high}), low, between));
}

// (Q, *rest)
Value at_percentages(const Value& sorted, const Value& percent, Between between) {
  const Shape& shape = spec_of(sorted).shape;
  const Bracket b = bracket(percent, shape[0], between, dtype_of(sorted));
  const Value low = rows(sorted, b.low);
  if (!b.high) return low;
  const Value high = rows(sorted, b.high), fraction = trailing(b.fraction, shape.ndim());
  return part_way(low, high, fraction);
}

Value shaped_percentiles(Value found, const Shape& q, const Axes& axis, bool keepdims, int ndim) {
  const Shape rest = spec_of(found).shape;
  if (q.ndim() != 1) {
    Shape shape = q;
    for (int i = 1; i < rest.ndim(); ++i) shape.push_back(rest[i]);
    found = q.ndim() == 0 && rest.ndim() > 1 ? call(kSqueeze, {found}, {{"axis", 0}}) : literal_reshape(found, shape);
  }
  if (!keepdims || ndim == 0) return found;
  if (spec_of(found).shape.ndim() == 0) {
    Shape ones = Shape::scalar();
    for (int i = 0; i < ndim; ++i) ones.push_back(1);
    return literal_reshape(found, ones);
  }
  for (const int64_t i : axes_tuple(reduced_axes(axis, false, ndim)))
    found = expand_dims(found, static_cast<int>(i) + q.ndim());
  return found;
}

Values percentile_rule(const PercentileParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  const Value a = cast(in[0], floating(dtype_of(in[0])));
  const Shape q = p.q_scalar ? Shape::scalar() : spec_of(in[1]).shape;
  if (reduced_count(shape, reduced_axes(p.axis, false, shape.ndim())) == 0 || reduces_nothing(p.axis))
    throw ShapeError({.input = "a",
                      .expected = "at least one element along the reduced axes",
                      .given = shape.str(),
                      .because = "no elements have no percentiles"});
  const Value percent =
      p.q_scalar ? full(Shape{1}, DType::kFloat64, *p.q_scalar) : literal_reshape(stop_gradient(in[1]), Shape{-1});
  const Value sorted = sorted_first(a, p.axis);
  const Value found = with_nans(at_percentages(sorted, percent, p.interpolation), sorted);
  return {shaped_percentiles(found, q, p.axis, p.keepdims, shape.ndim())};
}

template <bool kAll>
void declare_truth(OpRegistry& ops, const char* name, const char* alias, const char* doc) {
  auto op = ops.declare<TruthParams>(name);
  if (*alias != '\0') op.alias(alias);
  op.doc(doc)
      .input("data", "array of any shape; elements other than 0 are true")
      .names_its_input()
      .output("out", "bool; the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .compose(truth_rule<kAll>);
  const auto add = [&](Shape shape, std::vector<std::pair<std::string, std::string>> attrs) {
    op.sample({.inputs = {std::move(shape)},
               .attrs = std::move(attrs),
               .low = -1,
               .high = 1,
               .integer_valued = true,
               .check_gradient = false,
               .note = "steps"});
  };
  add({3, 4}, {});
  add({2, 3, 4}, {{"axis", "(0, -1)"}, {"keepdims", "True"}});
  add({2, 3}, {{"axis", "()"}});
  add({0, 3}, {{"axis", "0"}});
}

}  // namespace

void register_numpy_truth(OpRegistry& ops) {
  declare_truth<false>(ops, "_np_any", "_np_sometrue", "Whether any element along axes is not 0.");
  declare_truth<true>(ops, "_np_all", "", "Whether all elements along axes are not 0.");
}

void register_numpy_averages(OpRegistry& ops) {
  ops.declare<AverageParams>("_npi_average")
      .doc("Weighted mean over axes.")
      .input("a", "array of any shape")
      .optional_input("weights", "the shape of a, or one weight for each position along the one axis")
      .num_inputs([](const AverageParams& p) { return p.weighted ? 2 : 1; })
      .output("out", "the common dtype of the inputs, float32 for integers")
      .output("sum_of_weights", "with returned: the shape of the mean")
      .num_outputs([](const AverageParams& p) { return p.returned ? 2 : 1; })
      .compose(average_rule)
      .output_names(OutputNames::kNumbered)
      .sample({{2, 3}, {2, 3}}, {}, 0.5, 2)
      .sample({{2, 3}, {3}}, {{"axis", "1"}, {"returned", "True"}}, 0.5, 2)
      .sample({{2, 3, 2}, {2, 3, 2}}, {{"axis", "(0, 2)"}}, 0.5, 2)
      .sample({{2, 3}}, {{"weighted", "False"}, {"axis", "0"}, {"returned", "True"}});
  ops.declare<PercentileParams>("_npi_percentile")
      .doc("Percentiles over axes: q percent of the elements are not above the result.")
      .input("a", "array of any shape with elements")
      .optional_input("q", "percentages in [0, 100], any shape; not with q_scalar")
      .num_inputs([](const PercentileParams& p) { return p.q_scalar ? 1 : 2; })
      .output("out", "the axes of q, then the axes that are not reduced; float32 for integers")
      .compose(percentile_rule)
      .sample({{3, 4}}, {{"q_scalar", "30"}})
      .sample({{2, 3, 4}}, {{"q_scalar", "50"}, {"axis", "(0, 2)"}, {"keepdims", "True"}})
      .sample({{5, 2}}, {{"q_scalar", "40"}, {"axis", "0"}, {"interpolation", "midpoint"}})
      .sample({{5}}, {{"q_scalar", "40"}, {"interpolation", "lower"}})
      .sample({{5}}, {{"q_scalar", "40"}, {"interpolation", "higher"}})
      .sample({{5}}, {{"q_scalar", "37.5"}, {"interpolation", "nearest"}})
      .sample({.inputs = {{3, 4}, {2}},
               .attrs = {{"axis", "1"}},
               .low = 10,
               .high = 90,
               .check_gradient = false,
               .note = "percentages have no gradient"});
}

}  // namespace hybridnet::ops
