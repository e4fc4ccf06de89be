// Arithmetic of NumPy's interface: arrays of different dtypes are promoted to a common one, true division returns
// floats.
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/elementwise/scalar.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kAdd{"broadcast_add"}, kSub{"broadcast_sub"}, kMul{"broadcast_mul"}, kDiv{"broadcast_div"},
    kMod{"broadcast_mod"}, kPower{"broadcast_power"}, kMaximum{"broadcast_maximum"}, kMinimum{"broadcast_minimum"},
    kHypot{"broadcast_hypot"}, kPlusScalar{"_plus_scalar"}, kMinusScalar{"_minus_scalar"},
    kRMinusScalar{"_rminus_scalar"}, kMulScalar{"_mul_scalar"}, kDivScalar{"_div_scalar"}, kRDivScalar{"_rdiv_scalar"},
    kModScalar{"_mod_scalar"}, kRModScalar{"_rmod_scalar"}, kPowerScalar{"_power_scalar"},
    kRPowerScalar{"_rpower_scalar"}, kMaximumScalar{"_maximum_scalar"}, kMinimumScalar{"_minimum_scalar"},
    kHypotScalar{"_hypot_scalar"}, kFloor{"floor"}, kBitAnd{"_broadcast_bitwise_and"}, kBitOr{"_broadcast_bitwise_or"},
    kBitXor{"_broadcast_bitwise_xor"}, kLcm{"_broadcast_lcm"}, kGcd{"_broadcast_gcd"}, kArctan2{"_broadcast_arctan2"},
    kCopysign{"_broadcast_copysign"};

// The treatment of integers: kKeep keeps their dtype, kFloat converts them to kDefaultFloat. kOnly: floats are
// refused.
enum class Integers { kKeep, kFloat, kOnly };

struct Form {
  const char* name;
  const OpRef& classic;
  const char* doc;
  Integers integers = Integers::kKeep;
  double low = -2.0;
};

DType result_of(Integers integers, DType dtype) {
  if (integers == Integers::kOnly && is_floating(dtype))
    throw DTypeError({.input = "rhs",
                      .expected = "integers or bool",
                      .given = dtype_name(dtype),
                      .because = "the function is one of bits or divisors",
                      .fix = "cast with astype('int32')"});
  return integers == Integers::kFloat ? floating(dtype) : dtype;
}

bool is_same(Integers integers, DType dtype) {
  if (integers == Integers::kOnly) return !is_floating(dtype);
  return is_floating(dtype) || (integers == Integers::kKeep && dtype != DType::kBool);
}

bool has_edges(const OpRef& classic) { return &classic == &kMod || &classic == &kMaximum || &classic == &kMinimum; }

// An integer array and a scalar that its dtype cannot hold are computed in int64; the result then wraps around.
DType dtype_holding(double number, DType dtype) { return is_beyond(dtype, number) ? DType::kInt64 : dtype; }

void declare_arrays(OpRegistry& ops, const Form& f) {
  const OpRef* classic = &f.classic;
  const Integers integers = f.integers;
  auto op = ops.declare(f.name);
  op.doc(f.doc)
      .input("lhs", "first array")
      .input("rhs", "second array; shapes broadcast")
      .output("out", integers == Integers::kFloat ? "the common dtype of the inputs, float32 for integers"
                                                  : "the common dtype of the inputs")
      .compose([classic, integers](const NoParams&, const Values& in) -> Values {
        const DType result = result_of(integers, promoted(in));
        const DType inner = integers == Integers::kOnly ? result : arithmetic(result);
        return {cast(call(*classic, {cast(in[0], inner), cast(in[1], inner)}), result)};
      })
      .same_as(f.classic.name(), [integers](const NoParams&, std::span<const DType> in) {
        return all_equal(in) && is_same(integers, in[0]);
      });
  if (integers == Integers::kOnly) {
    op.op().dtypes = kIntegers | DType::kBool;
    for (const std::vector<Shape>& shapes : {std::vector<Shape>{{3, 4}, {3, 4}}, std::vector<Shape>{{2, 3, 1}, {4}}})
      op.sample(
          {.inputs = shapes, .low = -6, .high = 6, .dtypes = {DType::kInt32, DType::kInt64}, .integer_valued = true});
    return;
  }
  op.sample({{3, 4}, {3, 4}}, {}, f.low, 2.0)
      .sample({{2, 3, 1}, {4}}, {}, f.low, 2.0)
      .sample({Shape{0, 4}, Shape{1, 4}}, {}, f.low, 2.0);
  op.sample({.inputs = {{3, 4}, {4}},
             .low = 1,
             .high = 3,
             .dtypes = {DType::kUnknown, DType::kInt32},
             .integer_valued = true,
             .check_gradient = !has_edges(f.classic),
             .note = has_edges(f.classic) ? "an edge or a step at equal or integer values" : ""});
}

void declare_scalar(OpRegistry& ops, const Form& f) {
  const OpRef* classic = &f.classic;
  const Integers integers = f.integers;
  auto op = ops.declare<ScalarParams>(f.name);
  op.doc(f.doc)
      .input("data", "array of any shape")
      .output("out", "shape of data; float32 for integer data and a fractional scalar")
      .compose([classic, integers](const ScalarParams& p, const Values& in) -> Values {
        const DType dtype = dtype_of(in[0]);
        const bool to_float = !p.is_int || integers == Integers::kFloat;
        return {call(*classic, {to_float ? cast(in[0], floating(dtype)) : in[0]}, ParamSchema<ScalarParams>::box(p))};
      })
      .same_as(f.classic.name(),
               [integers](const ScalarParams& p, std::span<const DType> in) {
                 return is_floating(in[0]) || (integers == Integers::kKeep && p.is_int);
               })
      .sample({{3, 4}}, {{"scalar", "1.5"}, {"is_int", "False"}}, f.low, 2.0)
      .sample({{3, 4}}, {{"scalar", "2"}}, f.low, 2.0)
      .sample({Shape{0, 4}}, {{"scalar", "2"}}, f.low, 2.0);
}

// Declares the operators with a number on one side, passed as a scalar array.
void declare_scalar_array(OpRegistry& ops, const Form& f, bool reverse) {
  const OpRef* classic = &f.classic;
  const Integers integers = f.integers;
  auto op = ops.declare<ScalarParams>(f.name);
  op.doc(f.doc)
      .input("data", "array of any shape")
      .output("out", integers == Integers::kFloat ? "shape of data; float32 for integers" : "shape and dtype of data")
      .compose([classic, integers, reverse](const ScalarParams& p, const Values& in) -> Values {
        const DType dtype = dtype_of(in[0]);
        const bool widens = dtype == DType::kBool && p.scalar != 0 && p.scalar != 1;
        const DType number = p.is_int ? widens ? DType::kInt64 : dtype : floating(dtype);
        const DType result = result_of(integers, number);
        const DType inner = dtype_holding(p.scalar, result);
        const Value data = cast(in[0], inner), scalar = constant(p.scalar, inner);
        return {cast(call(*classic, {reverse ? scalar : data, reverse ? data : scalar}), result)};
      });
  if (integers == Integers::kOnly) {
    op.op().dtypes = kIntegers | DType::kBool;
    op.sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "6"}},
               .low = -6,
               .high = 6,
               .dtypes = {DType::kInt32},
               .integer_valued = true});
  } else {
    op.sample({{3, 4}}, {{"scalar", "1.5"}, {"is_int", "False"}}, f.low, 2.0)
        .sample({{3, 4}}, {{"scalar", "2"}}, f.low, 2.0);
  }
}

// The largest integer not above a / b. Integer division truncates. The remainder with the sign of b minus the
// remainder with the sign of a is b if the truncated quotient is one too large, else 0. Neither value exceeds the range
// of the dtype.
Value floor_quotient(const Value& a, const Value& b) {
  if (is_floating(dtype_of(a))) return call(kFloor, {call(kDiv, {a, b})});
  const Value truncated = call(kDiv, {a, b});
  if (dtype_of(a) == DType::kUInt8) return truncated;
  const Value rest = call(kSub, {a, call(kMul, {truncated, b})});
  return call(kSub, {truncated, call(kDiv, {call(kSub, {call(kMod, {a, b}), rest}), b})});
}

void declare_floor_divide(OpRegistry& ops) {
  const char* doc = "The largest integer that is not above lhs / rhs; 0 for an integer rhs of 0.";
  const char* note = "steps at integer quotients";
  ops.declare("_npi_floor_divide")
      .doc(doc)
      .input("lhs", "first array")
      .input("rhs", "second array; shapes broadcast")
      .output("out", "the common dtype of the inputs")
      .compose([](const NoParams&, const Values& in) -> Values {
        const DType dtype = promoted(in), inner = arithmetic(dtype);
        return {cast(floor_quotient(cast(in[0], inner), cast(in[1], inner)), dtype)};
      })
      .sample({.inputs = {{3, 4}, {3, 4}}, .low = 0.5, .high = 2.0, .check_gradient = false, .note = note})
      .sample({.inputs = {{2, 3, 1}, {4}},
               .low = 1,
               .high = 9,
               .integer_valued = true,
               .check_gradient = false,
               .note = note});
  for (const bool reverse : {false, true})
    ops.declare<ScalarParams>(reverse ? "_npi_rfloor_divide_scalar" : "_npi_floor_divide_scalar")
        .doc(reverse ? "The largest integer not above scalar / data." : "The largest integer not above data / scalar.")
        .input("data", "array of any shape")
        .output("out", "shape of data; dtype of data - scalar")
        .compose([reverse](const ScalarParams& p, const Values& in) -> Values {
          const DType own = dtype_of(in[0]);
          const DType dtype = !p.is_int ? floating(own) : own == DType::kBool ? DType::kInt64 : own;
          const DType inner = dtype_holding(p.scalar, dtype);
          const Value data = cast(in[0], inner), scalar = constant(p.scalar, inner);
          return {cast(floor_quotient(reverse ? scalar : data, reverse ? data : scalar), dtype)};
        })
        .sample({.inputs = {{3, 4}},
                 .attrs = {{"scalar", "1.5"}, {"is_int", "False"}},
                 .low = 0.5,
                 .high = 2.0,
                 .check_gradient = false,
                 .note = note})
        .sample({.inputs = {{3, 4}},
                 .attrs = {{"scalar", "2"}},
                 .low = 1,
                 .high = 9,
                 .integer_valued = true,
                 .check_gradient = false,
                 .note = note});
}

// x1 * 2^x2 for real x2.
Value scaled_by_power(const Value& a, const Value& b) {
  return call(kMul, {a, call(kRPowerScalar, {b}, {{"scalar", 2}})});
}

void declare_ldexp(OpRegistry& ops) {
  ops.declare("_npi_ldexp")
      .doc("lhs * 2^rhs with broadcasting.")
      .input("lhs", "first array")
      .input("rhs", "second array; shapes broadcast")
      .output("out", "the common dtype of the inputs, float32 for integers")
      .compose([](const NoParams&, const Values& in) -> Values {
        const DType dtype = floating(promoted(in));
        return {scaled_by_power(cast(in[0], dtype), cast(in[1], dtype))};
      })
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 1}, {4}});
  for (const bool reverse : {false, true})
    ops.declare<ScalarParams>(reverse ? "_npi_rldexp_scalar" : "_npi_ldexp_scalar")
        .doc(reverse ? "scalar * 2^data." : "data * 2^scalar.")
        .input("data", "array of any shape")
        .output("out", "shape of data; float32 for integers")
        .compose([reverse](const ScalarParams& p, const Values& in) -> Values {
          const Value data = cast(in[0], floating(dtype_of(in[0])));
          if (!reverse) return {data * std::exp2(p.scalar)};
          return {call(kRPowerScalar, {data}, {{"scalar", 2}}) * p.scalar};
        })
        .sample({{3, 4}}, {{"scalar", "1.5"}, {"is_int", "False"}});
}

}  // namespace

void register_numpy_functions_of_two(OpRegistry& ops) {
  declare_arrays(ops, {"_npi_bitwise_and", kBitAnd, "Bits set in both, with broadcasting.", Integers::kOnly});
  declare_arrays(ops, {"_npi_bitwise_or", kBitOr, "Bits set in either, with broadcasting.", Integers::kOnly});
  declare_arrays(ops, {"_npi_bitwise_xor", kBitXor, "Bits set in exactly one, with broadcasting.", Integers::kOnly});
  declare_arrays(ops,
                 {"_npi_lcm", kLcm, "Least common multiple with broadcasting; 0 if either is 0.", Integers::kOnly});
  declare_arrays(ops, {"_npi_gcd", kGcd, "Greatest common divisor with broadcasting.", Integers::kOnly});
  declare_arrays(ops, {"_npi_arctan2", kArctan2, "Angle of the point (rhs, lhs), in radians.", Integers::kFloat, 0.5});
  declare_arrays(
      ops, {"_npi_copysign", kCopysign, "The absolute value of lhs with the sign of rhs.", Integers::kFloat, 0.5});
  declare_scalar_array(ops, {"_npi_bitwise_and_scalar", kBitAnd, "Bits set in data and scalar.", Integers::kOnly},
                       false);
  declare_scalar_array(ops, {"_npi_bitwise_or_scalar", kBitOr, "Bits set in data or scalar.", Integers::kOnly}, false);
  declare_scalar_array(
      ops, {"_npi_bitwise_xor_scalar", kBitXor, "Bits set in exactly one of data and scalar.", Integers::kOnly}, false);
  declare_scalar_array(ops, {"_npi_lcm_scalar", kLcm, "Least common multiple with scalar.", Integers::kOnly}, false);
  declare_scalar_array(ops, {"_npi_gcd_scalar", kGcd, "Greatest common divisor with scalar.", Integers::kOnly}, false);
  for (const bool reverse : {false, true}) {
    declare_scalar_array(
        ops,
        {reverse ? "_npi_rarctan2_scalar" : "_npi_arctan2_scalar", kArctan2,
         reverse ? "Angle of the point (data, scalar)." : "Angle of the point (scalar, data).", Integers::kFloat, 0.5},
        reverse);
    declare_scalar_array(ops,
                         {reverse ? "_npi_rcopysign_scalar" : "_npi_copysign_scalar", kCopysign,
                          reverse ? "The absolute value of scalar with the sign of data."
                                  : "The absolute value of data with the sign of scalar.",
                          Integers::kFloat, 0.5},
                         reverse);
  }
  declare_ldexp(ops);
  declare_floor_divide(ops);
}

void register_numpy_arithmetic(OpRegistry& ops) {
  declare_arrays(ops, {"_npi_add", kAdd, "lhs + rhs with broadcasting."});
  declare_arrays(ops, {"_npi_subtract", kSub, "lhs - rhs with broadcasting."});
  declare_arrays(ops, {"_npi_multiply", kMul, "lhs * rhs with broadcasting."});
  declare_arrays(ops, {"_npi_true_divide", kDiv, "lhs / rhs with broadcasting; integers too.", Integers::kFloat, 0.5});
  declare_arrays(ops, {"_npi_mod", kMod, "Remainder of lhs / rhs with the sign of rhs, with broadcasting.", {}, 0.5});
  declare_arrays(ops, {"_npi_power", kPower, "lhs to the power rhs, with broadcasting.", {}, 0.5});
  declare_arrays(ops, {"_npi_maximum", kMaximum, "The larger of two, with broadcasting."});
  declare_arrays(ops, {"_npi_minimum", kMinimum, "The smaller of two, with broadcasting."});
  declare_arrays(ops, {"_npi_hypot", kHypot, "sqrt(lhs^2 + rhs^2) with broadcasting.", Integers::kFloat, 0.5});
}

void register_numpy_scalar_arithmetic(OpRegistry& ops) {
  declare_scalar(ops, {"_npi_add_scalar", kPlusScalar, "data + scalar."});
  declare_scalar(ops, {"_npi_subtract_scalar", kMinusScalar, "data - scalar."});
  declare_scalar(ops, {"_npi_rsubtract_scalar", kRMinusScalar, "scalar - data."});
  declare_scalar(ops, {"_npi_multiply_scalar", kMulScalar, "data * scalar."});
  declare_scalar(ops, {"_npi_true_divide_scalar", kDivScalar, "data / scalar.", Integers::kFloat, 0.5});
  declare_scalar(ops, {"_npi_rtrue_divide_scalar", kRDivScalar, "scalar / data.", Integers::kFloat, 0.5});
  declare_scalar(ops, {"_npi_mod_scalar", kModScalar, "Remainder of data / scalar, with the sign of scalar.", {}, 0.5});
  declare_scalar(ops, {"_npi_rmod_scalar", kRModScalar, "Remainder of scalar / data, with the sign of data.", {}, 0.5});
  declare_scalar(ops, {"_npi_power_scalar", kPowerScalar, "data to the power scalar.", {}, 0.5});
  declare_scalar(ops, {"_npi_maximum_scalar", kMaximumScalar, "The larger of data and scalar."});
  declare_scalar(ops, {"_npi_minimum_scalar", kMinimumScalar, "The smaller of data and scalar."});
  declare_scalar(ops, {"_npi_hypot_scalar", kHypotScalar, "sqrt(data^2 + scalar^2).", Integers::kFloat, 0.5});
  declare_scalar(ops, {"_npi_rpower_scalar", kRPowerScalar, "scalar to the power data.", {}, 0.5});
}

}  // namespace hybridnet::ops
