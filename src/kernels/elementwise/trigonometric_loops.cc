// Trigonometric and hyperbolic functions and their inverses.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/trigonometric_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/trigonometry.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_trigonometric(SpanLoops* table) {
  add<Sin, 1>(table, Pointwise::kSin, 0.6, Floats());
  add<Cos, 1>(table, Pointwise::kCos, 0.6, Floats());
  add<Tan, 1>(table, Pointwise::kTan, 0.9, Floats());
  add<Arcsin, 1>(table, Pointwise::kArcsin, 0.7, Floats());
  add<Arccos, 1>(table, Pointwise::kArccos, 0.7, Floats());
  add<Arctan, 1>(table, Pointwise::kArctan, 0.8, Floats());
  add<Sinh, 1>(table, Pointwise::kSinh, 1.4, Floats());
  add<Cosh, 1>(table, Pointwise::kCosh, 0.9, Floats());
  add<Arcsinh, 1>(table, Pointwise::kArcsinh, 1.4, Floats());
  add<Arccosh, 1>(table, Pointwise::kArccosh, 1.4, Floats());
  add<Arctanh, 1>(table, Pointwise::kArctanh, 1.2, Floats());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_trigonometric);
void fill_trigonometric(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_trigonometric)(table); }
}  // namespace hybridnet::kernels
#endif
