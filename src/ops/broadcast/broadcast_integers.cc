// Bitwise operators, common multiples and divisors of integers, and real functions of two arguments that only
// NumPy's interface exposes. These run after type promotion.
#include "hybridnet/declare.h"
#include "ops/broadcast/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kSign{"sign"}, kCopysign{"_broadcast_copysign"};

constexpr DTypeSet kIntegersAndBool = kIntegers | DType::kBool;

template <Pointwise F>
void declare_integer(OpRegistry& ops, const char* name, const char* doc) {
  broadcast_op<F>(ops, name, doc, kIntegersAndBool)
      .internal()
      .commutative()
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{3, 4}, {3, 4}}, .low = -6, .high = 6, .integer_valued = true})
      .sample({.inputs = {{2, 3, 1}, {4}}, .low = -6, .high = 6, .integer_valued = true});
}

Values arctan2_gradient(const NoParams&, const GradientContext& g) {
  const Value a = g.input(0), b = g.input(1), dy = g.output_grad(0);
  const Value squares = a * a + b * b;
  return {g.wants(0) ? to_operand(g, 0, dy * b / squares) : Value{},
          g.wants(1) ? -to_operand(g, 1, dy * a / squares) : Value{}};
}

// |a| with the sign of b: the derivative is 1 if both signs agree, else -1.
Values copysign_gradient(const NoParams&, const GradientContext& g) {
  const Value a = g.input(0), dy = g.output_grad(0);
  return {to_operand(g, 0, dy * call(kCopysign, {call(kSign, {a}), g.input(1)}) * call(kSign, {a})), {}};
}

}  // namespace

void register_broadcast_integers(OpRegistry& ops) {
  declare_integer<Pointwise::kBitAnd>(ops, "_broadcast_bitwise_and", "Bits set in both, with broadcasting.");
  declare_integer<Pointwise::kBitOr>(ops, "_broadcast_bitwise_or", "Bits set in either, with broadcasting.");
  declare_integer<Pointwise::kBitXor>(ops, "_broadcast_bitwise_xor", "Bits set in exactly one, with broadcasting.");
  declare_integer<Pointwise::kLcm>(ops, "_broadcast_lcm",
                                   "Least common multiple, with broadcasting; 0 if either is 0.");
  declare_integer<Pointwise::kGcd>(ops, "_broadcast_gcd", "Greatest common divisor, with broadcasting.");
  unary<Pointwise::kBitNot>(ops, "_bitwise_not", "All bits inverted; logical not for bool.", kIntegersAndBool)
      .internal()
      .gradient(kNotDifferentiable)
      .sample({.inputs = {{3, 4}}, .low = -6, .high = 6, .integer_valued = true});
}

void register_broadcast_angles(OpRegistry& ops) {
  broadcast_op<Pointwise::kArctan2>(ops, "_broadcast_arctan2", "Angle of the point (rhs, lhs), in radians.", kFloating)
      .internal()
      .gradient(arctan2_gradient, Saves::all_inputs())
      .sample({{3, 4}, {3, 4}}, {}, 0.5, 2.0)
      .sample({{2, 3, 1}, {4}}, {}, 0.5, 2.0);
  broadcast_op<Pointwise::kCopysign>(ops, "_broadcast_copysign", "The absolute value of lhs with the sign of rhs.",
                                     kFloating)
      .internal()
      .gradient(copysign_gradient, Saves::all_inputs())
      .sample({{3, 4}, {3, 4}})
      .sample({{2, 3, 1}, {4}});
}

}  // namespace hybridnet::ops
