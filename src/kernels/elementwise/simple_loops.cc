// Functions of one input (and gradients, whose first input is the output gradient) without transcendental mathematics.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/simple_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/half_power.h"
#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/simple.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_half_power(SpanLoops* loops) { add<HalfPower, 1>(loops, Pointwise{}, 0.3, Floats()); }

void fill_simple(SpanLoops* table) {
  add<Copy, 1>(table, Pointwise::kCopy, 0.1, AllTypes());
  add<Negative, 1>(table, Pointwise::kNegative, 0.1, FloatsAndIntegers());
  add<Abs, 1>(table, Pointwise::kAbs, 0.1, FloatsAndIntegers());
  add<Sign, 1>(table, Pointwise::kSign, 0.1, FloatsAndIntegers());
  add<Square, 1>(table, Pointwise::kSquare, 0.1, FloatsAndIntegers());
  add<Cube, 1>(table, Pointwise::kCube, 0.1, FloatsAndIntegers());
  add<Relu, 1>(table, Pointwise::kRelu, 0.1, FloatsAndIntegers());
  add<LogicalNot, 1>(table, Pointwise::kLogicalNot, 0.1, AllTypes());
  add<Reciprocal, 1>(table, Pointwise::kReciprocal, 0.2, FloatsAndIntegers());
  add<Floor, 1>(table, Pointwise::kFloor, 0.1, Floats());
  add<Ceil, 1>(table, Pointwise::kCeil, 0.1, Floats());
  add<Trunc, 1>(table, Pointwise::kTrunc, 0.1, Floats());
  add<Rint, 1>(table, Pointwise::kRint, 0.1, Floats());
  add<RoundEven, 1>(table, Pointwise::kRoundEven, 0.1, Floats());
  add<Round, 1>(table, Pointwise::kRound, 0.1, Floats());
  add<Sqrt, 1>(table, Pointwise::kSqrt, 0.4, Floats());
  add<Rsqrt, 1>(table, Pointwise::kRsqrt, 0.6, Floats());
  add_typed<Scale, 1>(table, Pointwise::kScale, 0.1, Floats());
  add_typed<Clip, 1>(table, Pointwise::kClip, 0.1, FloatsAndIntegers());
  add<ReluGrad, 2>(table, Pointwise::kReluGrad, 0.1, FloatsAndIntegers());
  add<SigmoidGrad, 2>(table, Pointwise::kSigmoidGrad, 0.1, Floats());
  add<TanhGrad, 2>(table, Pointwise::kTanhGrad, 0.1, Floats());
  add<SqrtGrad, 2>(table, Pointwise::kSqrtGrad, 0.2, Floats());
  add<SquareGrad, 2>(table, Pointwise::kSquareGrad, 0.1, Floats());
  add<DivGrad, 3>(table, Pointwise::kDivGrad, 0.2, Floats());
  // Rounding does not change integers.
  for (const Pointwise id :
       {Pointwise::kFloor, Pointwise::kCeil, Pointwise::kTrunc, Pointwise::kRint, Pointwise::kRound}) {
    for (const DType t : {DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kBool}) {
      SpanLoops &rounding = table[static_cast<int>(id)], &copy = table[static_cast<int>(Pointwise::kCopy)];
      rounding.fn[0][static_cast<int>(t)] = copy.fn[0][static_cast<int>(t)];
      rounding.functor[static_cast<int>(t)] = copy.functor[static_cast<int>(t)];
    }
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_simple);
HWY_EXPORT(fill_half_power);
void fill_simple(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_simple)(table); }

const SpanLoops& half_power_loops() {
  static const SpanLoops filled = [] {
    SpanLoops loops;
    HWY_DYNAMIC_DISPATCH(fill_half_power)(&loops);
    loops.functors = "kernels/functors/simple.h";
    return loops;
  }();
  return filled;
}
}  // namespace hybridnet::kernels
#endif
