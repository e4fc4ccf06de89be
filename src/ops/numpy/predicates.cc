// Tests of the elements of an array for NaN, infinities and zero, in NumPy's interface.
#include <limits>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kIsNotEqual{"_is_not_equal"}, kIsEqualScalar{"_is_equal_scalar"}, kIsLessScalar{"_is_less_scalar"},
    kIsZero{"_is_zero"}, kAbs{"abs"}, kBitwiseNot{"_bitwise_not"};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Casts integers to floats: they are all finite, but infinity cast to their dtype would be their largest number.
Value as_real(const Value& x) { return cast(x, floating(dtype_of(x))); }

Value compared(const OpRef& op, const Value& x, double number) {
  return call(op, {x}, {{"scalar", number}, {"is_int", false}});
}

template <typename Rule>
OpBuilder<NoParams> predicate(OpRegistry& ops, const char* name, const char* doc, Rule rule) {
  auto op = ops.declare(name);
  op.doc(doc)
      .input("x", "array of any shape")
      .output("out", "bool, shape of x")
      .compose([rule](const NoParams&, const Values& in) -> Values { return {rule(in[0])}; })
      .sample(
          {.inputs = {{3, 4}}, .low = -2, .high = 2, .integer_valued = true, .check_gradient = false, .note = "steps"})
      .sample({.inputs = {Shape::scalar()},
               .low = -2,
               .high = 2,
               .integer_valued = true,
               .check_gradient = false,
               .note = "steps"});
  return op;
}

}  // namespace

void register_numpy_predicates(OpRegistry& ops) {
  predicate(ops, "_npi_isnan", "Whether x is not a number.", [](const Value& x) {
    const Value real = as_real(x);
    return call(kIsNotEqual, {real, real});
  });
  predicate(ops, "_npi_isinf", "Whether x is infinite.",
            [](const Value& x) { return compared(kIsEqualScalar, call(kAbs, {as_real(x)}), kInfinity); });
  predicate(ops, "_npi_isfinite", "Whether x is neither infinite nor NaN.",
            [](const Value& x) { return compared(kIsLessScalar, call(kAbs, {as_real(x)}), kInfinity); });
  predicate(ops, "_npi_isposinf", "Whether x is infinity.",
            [](const Value& x) { return compared(kIsEqualScalar, as_real(x), kInfinity); });
  predicate(ops, "_npi_isneginf", "Whether x is minus infinity.",
            [](const Value& x) { return compared(kIsEqualScalar, as_real(x), -kInfinity); });
  predicate(ops, "_npi_logical_not", "Whether x is 0.", [](const Value& x) {
    return call(kIsZero, {x});
  }).same_as("_is_zero", [](const NoParams&, std::span<const DType>) { return true; });
  auto bitwise_not = ops.declare("_npi_bitwise_not");
  bitwise_not.op().dtypes = kIntegers | DType::kBool;
  bitwise_not.doc("All bits inverted; logical not for bool.")
      .input("x", "array of integers or bool")
      .output("out", "shape and dtype of x")
      .compose([](const NoParams&, const Values& in) -> Values { return {call(kBitwiseNot, {in[0]})}; })
      .sample({.inputs = {{3, 4}}, .low = -6, .high = 6, .dtypes = {DType::kInt32}, .integer_valued = true});
}

}  // namespace hybridnet::ops
