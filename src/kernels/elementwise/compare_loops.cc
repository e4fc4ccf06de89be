// Comparisons and logic of two inputs: 1 or 0 in the dtype of the inputs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/compare_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/comparisons.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_compare(SpanLoops* table) {
  add<Equal, 2>(table, Pointwise::kEqual, 0.1, AllTypes());
  add<NotEqual, 2>(table, Pointwise::kNotEqual, 0.1, AllTypes());
  add<Greater, 2>(table, Pointwise::kGreater, 0.1, AllTypes());
  add<GreaterEqual, 2>(table, Pointwise::kGreaterEqual, 0.1, AllTypes());
  add<Lesser, 2>(table, Pointwise::kLesser, 0.1, AllTypes());
  add<LesserEqual, 2>(table, Pointwise::kLesserEqual, 0.1, AllTypes());
  add<LogicalAnd, 2>(table, Pointwise::kLogicalAnd, 0.1, AllTypes());
  add<LogicalOr, 2>(table, Pointwise::kLogicalOr, 0.1, AllTypes());
  add<LogicalXor, 2>(table, Pointwise::kLogicalXor, 0.1, AllTypes());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_compare);
void fill_compare(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_compare)(table); }
}  // namespace hybridnet::kernels
#endif
