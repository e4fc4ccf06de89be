// Arithmetic of two inputs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/arithmetic_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/arithmetic.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_arithmetic(SpanLoops* table) {
  add<Add, 2>(table, Pointwise::kAdd, 0.1, AllTypes());
  add<Sub, 2>(table, Pointwise::kSub, 0.1, AllTypes());
  add<Mul, 2>(table, Pointwise::kMul, 0.1, AllTypes());
  add<Div, 2>(table, Pointwise::kDiv, 0.2, AllTypes());
  add<Mod, 2>(table, Pointwise::kMod, 8.0, FloatsAndIntegers());
  add<Maximum, 2>(table, Pointwise::kMaximum, 0.1, AllTypes());
  add<Minimum, 2>(table, Pointwise::kMinimum, 0.1, AllTypes());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_arithmetic);
void fill_arithmetic(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_arithmetic)(table); }
}  // namespace hybridnet::kernels
#endif
