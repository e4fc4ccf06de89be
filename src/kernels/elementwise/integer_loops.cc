// Functions of integers: bitwise operations, common multiples and divisors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/integer_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/integers.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_integers(SpanLoops* table) {
  add<BitAnd, 2>(table, Pointwise::kBitAnd, 0.1, IntegerTypes());
  add<BitOr, 2>(table, Pointwise::kBitOr, 0.1, IntegerTypes());
  add<BitXor, 2>(table, Pointwise::kBitXor, 0.1, IntegerTypes());
  add<BitNot, 1>(table, Pointwise::kBitNot, 0.1, IntegerTypes());
  add<Lcm, 2>(table, Pointwise::kLcm, 30, IntegerTypes());
  add<Gcd, 2>(table, Pointwise::kGcd, 30, IntegerTypes());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_integers);
void fill_integers(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_integers)(table); }
}  // namespace hybridnet::kernels
#endif
