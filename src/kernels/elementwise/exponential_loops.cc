// Exponentials, logarithms and the activations made of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/exponential_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/exponentials.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_exponential(SpanLoops* table) {
  add<Exp, 1>(table, Pointwise::kExp, 0.5, Floats());
  add<Expm1, 1>(table, Pointwise::kExpm1, 0.6, Floats());
  add<Log, 1>(table, Pointwise::kLog, 0.8, Floats());
  add<Log2, 1>(table, Pointwise::kLog2, 0.8, Floats());
  add<Log10, 1>(table, Pointwise::kLog10, 0.8, Floats());
  add<Log1p, 1>(table, Pointwise::kLog1p, 1.0, Floats());
  add<Tanh, 1>(table, Pointwise::kTanh, 0.8, Floats());
  add<Sigmoid, 1>(table, Pointwise::kSigmoid, 0.7, Floats());
  add<Softrelu, 1>(table, Pointwise::kSoftrelu, 1.2, Floats());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_exponential);
void fill_exponential(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_exponential)(table); }
}  // namespace hybridnet::kernels
#endif
