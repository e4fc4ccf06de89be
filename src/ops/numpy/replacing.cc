// Operators that replace elements, in NumPy's interface: where, nan_to_num, around.
#include <cmath>
#include <limits>

#include "hybridnet/declare.h"
#include "kernels/functors/formulas.h"
#include "ops/elementwise/formula.h"
#include "ops/numpy/promote.h"

namespace hybridnet::kernels {

void FiniteOrParams::describe(ParamSchema<FiniteOrParams>& schema) {
  schema.field("nan", &FiniteOrParams::nan).doc("Replaces NaN.");
  schema.field("posinf", &FiniteOrParams::posinf).doc("Replaces infinity.");
  schema.field("neginf", &FiniteOrParams::neginf).doc("Replaces minus infinity.");
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kWhere{"where"}, kRoundEven{"_round_even"}, kFiniteOr{"_finite_or"}, kIsLessScalar{"_is_less_scalar"},
    kAbs{"abs"};

// ---- where
Values chosen(const Value& condition, const Values& sides) {
  const Values xy = in_common_dtype(sides);
  const Shape shape = common_shape({condition, xy[0], xy[1]}, {"condition", "x", "y"});
  return {call(kWhere, {repeated(condition, shape), repeated(xy[0], shape), repeated(xy[1], shape)})};
}

struct WhereScalarParams {
  double scalar;
  static void describe(ParamSchema<WhereScalarParams>& schema) {
    schema.field("scalar", &WhereScalarParams::scalar)
        .default_value(0.0)
        .doc("The number used in place of the other array.");
  }
};

struct WhereScalarsParams {
  double x, y;
  static void describe(ParamSchema<WhereScalarsParams>& schema) {
    schema.field("x", &WhereScalarsParams::x).default_value(0.0).doc("The number where the condition holds.");
    schema.field("y", &WhereScalarsParams::y).default_value(0.0).doc("The number elsewhere.");
  }
};

bool is_whole(double number) { return number == std::floor(number) && std::isfinite(number); }

// Casts integers to floats if the number is fractional; bool is kept for 0 and 1 only.
Values beside_scalar(const Value& array, double scalar) {
  const DType own = dtype_of(array);
  DType dtype = is_whole(scalar) ? own : floating(own);
  if (dtype == DType::kBool && scalar != 0 && scalar != 1) dtype = DType::kInt64;
  return {cast(array, dtype), constant(scalar, dtype)};
}

void declare_where(OpRegistry& ops) {
  ops.declare("_npi_where")
      .doc("Elements of x where the condition is not 0, otherwise of y, with broadcasting.")
      .input("condition", "any dtype")
      .input("x", "array")
      .input("y", "array; the three shapes broadcast")
      .output("out", "the common dtype of x and y")
      .compose([](const NoParams&, const Values& in) {
        return chosen(in[0], {in[1], in[2]});
      })
      .sample({.inputs = {{3, 4}, {3, 4}, {3, 4}}, .low = -2, .high = 2, .integer_valued = true})
      .sample({.inputs = {{3, 1}, {4}, Shape::scalar()}, .low = -2, .high = 2, .integer_valued = true})
      .sample({Shape{0, 4}, Shape{1, 4}, Shape{4}});
  ops.declare<WhereScalarParams>("_npi_where_lscalar")
      .doc("The number where the condition is not 0, otherwise elements of x.")
      .input("condition", "any dtype")
      .input("x", "array; shapes broadcast")
      .output("out", "dtype of x; float32 for integers and a fractional number")
      .compose([](const WhereScalarParams& p, const Values& in) {
        const Values sides = beside_scalar(in[1], p.scalar);
        return chosen(in[0], {sides[1], sides[0]});
      })
      .sample({.inputs = {{3, 4}, {3, 4}}, .attrs = {{"scalar", "1.5"}}, .integer_valued = true});
  ops.declare<WhereScalarParams>("_npi_where_rscalar")
      .doc("Elements of y where the condition is not 0, otherwise the number.")
      .input("condition", "any dtype")
      .input("y", "array; shapes broadcast")
      .output("out", "dtype of y; float32 for integers and a fractional number")
      .compose([](const WhereScalarParams& p, const Values& in) {
        const Values sides = beside_scalar(in[1], p.scalar);
        return chosen(in[0], {sides[0], sides[1]});
      })
      .sample({.inputs = {{3, 4}, {3, 4}}, .attrs = {{"scalar", "2"}}, .integer_valued = true});
  ops.declare<WhereScalarsParams>("_npi_where_scalar2")
      .doc("One number where the condition is not 0, another elsewhere.")
      .input("condition", "any dtype")
      .output("out", "float32, shape of the condition")
      .compose([](const WhereScalarsParams& p, const Values& in) {
        return chosen(in[0], {constant(p.x, kDefaultFloat), constant(p.y, kDefaultFloat)});
      })
      .sample({.inputs = {{3, 4}},
               .attrs = {{"x", "1.5"}, {"y", "-1"}},
               .integer_valued = true,
               .check_gradient = false,
               .note = "steps where the condition becomes 0"});
}

// ---- nan_to_num
struct FiniteParams {
  bool copy;
  double nan;
  std::optional<double> posinf, neginf;
  static void describe(ParamSchema<FiniteParams>& schema) {
    schema.field("copy", &FiniteParams::copy).default_value(true).doc("Ignored: the result is a new array.");
    schema.field("nan", &FiniteParams::nan).default_value(0.0).doc("Replaces NaN.");
    schema.field("posinf", &FiniteParams::posinf).none_by_default().doc("Replaces infinity; None: the largest number.");
    schema.field("neginf", &FiniteParams::neginf)
        .none_by_default()
        .doc("Replaces minus infinity; None: the smallest number.");
  }
};

using kernels::FiniteOrParams;

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 3.3895313892515355e38;
    default:
      return static_cast<double>(std::numeric_limits<float>::max());
  }
}

Values nan_to_num_rule(const FiniteParams& p, const Values& in) {
  const DType dtype = dtype_of(in[0]);
  if (!is_floating(dtype)) return {in[0]};
  return {call(
      kFiniteOr, {in[0]},
      {{"nan", p.nan}, {"posinf", p.posinf.value_or(largest(dtype))}, {"neginf", p.neginf.value_or(-largest(dtype))}})};
}

// dy where x is finite, else 0; a select, because NaN times 0 is NaN.
Values finite_or_gradient(const FiniteOrParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0);
  const Value finite = call(kIsLessScalar, {call(kAbs, {g.input(0)})},
                            {{"scalar", std::numeric_limits<double>::infinity()}, {"is_int", false}});
  return {where(finite, dy, zeros_like(dy))};
}

// ---- around
struct AroundParams {
  int32_t decimals;
  static void describe(ParamSchema<AroundParams>& schema) {
    schema.field("decimals", &AroundParams::decimals)
        .default_value(0)
        .doc("Number of decimal digits; negative: digits before the point that are rounded to 0.");
  }
};

Values around_rule(const AroundParams& p, const Values& in) {
  const DType dtype = dtype_of(in[0]);
  if (!is_floating(dtype) && p.decimals >= 0) return {in[0]};
  const Value x = is_floating(dtype) ? in[0] : cast(in[0], DType::kFloat64);
  if (p.decimals == 0) return {call(kRoundEven, {x})};
  const double factor = std::pow(10.0, std::abs(static_cast<double>(p.decimals)));
  const Value scaled = p.decimals > 0 ? x * factor : x / factor;
  const Value rounded = call(kRoundEven, {scaled});
  return {cast(p.decimals > 0 ? rounded / factor : rounded * factor, dtype)};
}

}  // namespace

void register_numpy_choices(OpRegistry& ops) { declare_where(ops); }

void register_numpy_finite(OpRegistry& ops) {
  auto finite_or = ops.declare<FiniteOrParams>("_finite_or");
  finite_or.doc("x where it is finite, other numbers where it is not.").internal().input("data", "floating array");
  formula(finite_or, 0.5, kFloating)
      .gradient(finite_or_gradient, Saves::all_inputs())
      .sample({{3, 4}}, {{"nan", "0"}, {"posinf", "1"}, {"neginf", "-1"}});
  ops.declare<FiniteParams>("_npi_nan_to_num")
      .doc("The finite elements unchanged; NaN and infinities replaced by numbers.")
      .input("data", "array of any shape")
      .names_its_input()
      .output("out", "shape and dtype of data")
      .compose(nan_to_num_rule)
      .sample({{3, 4}})
      .sample({{3, 4}}, {{"nan", "2"}, {"posinf", "3"}, {"neginf", "-3"}});
}

void register_numpy_around(OpRegistry& ops) {
  unary<Pointwise::kRoundEven>(ops, "_round_even", "Rounds to the nearest integer; halves to the even one.", kFloating)
      .internal()
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{3, 4}});
  ops.declare<AroundParams>("_npi_around")
      .doc("Rounds to a number of decimals; halves to the even digit.")
      .input("x", "array of any shape")
      .output("out", "shape and dtype of x")
      .compose(around_rule)
      .sample({{3, 4}})
      .sample({.inputs = {{3, 4}}, .attrs = {{"decimals", "1"}}, .check_gradient = false, .note = "steps"})
      .sample({.inputs = {{3, 4}},
               .attrs = {{"decimals", "-1"}},
               .low = -100,
               .high = 100,
               .check_gradient = false,
               .note = "steps"});
}

}  // namespace hybridnet::ops
