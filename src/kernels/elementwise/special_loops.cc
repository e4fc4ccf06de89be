// Error function, gamma functions, roots and powers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/special_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/special.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_special(SpanLoops* table) {
  add<Erf, 1>(table, Pointwise::kErf, 1.0, Floats());
  add<Erfinv, 1>(table, Pointwise::kErfinv, 15, Floats());
  add<Gamma, 1>(table, Pointwise::kGamma, 40, Floats());
  add<Gammaln, 1>(table, Pointwise::kGammaln, 25, Floats());
  add_typed<Polygamma, 1>(table, Pointwise::kPolygamma, 40, Floats());
  add<Cbrt, 1>(table, Pointwise::kCbrt, 8, Floats());
  add<Rcbrt, 1>(table, Pointwise::kRcbrt, 9, Floats());
  add<Power, 2>(table, Pointwise::kPower, 2, FloatsAndIntegers());
  set_loops<float, PowerOfFloats, 2>(table[static_cast<int>(Pointwise::kPower)]);
  add<Hypot, 2>(table, Pointwise::kHypot, 1, Floats());
  add<Arctan2, 2>(table, Pointwise::kArctan2, 15, Floats());
  add<Copysign, 2>(table, Pointwise::kCopysign, 0.3, Floats());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_special);
void fill_special(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_special)(table); }
}  // namespace hybridnet::kernels
#endif
