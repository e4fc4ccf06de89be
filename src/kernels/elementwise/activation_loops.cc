// Activations with parameters or unusual formulas, and gradients of activations.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activation_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/functors/activations.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

void fill_activation(SpanLoops* table) {
  add<Gelu, 1>(table, Pointwise::kGelu, 1.1, Floats());
  add<GeluGrad, 2>(table, Pointwise::kGeluGrad, 1.6, Floats());
  add<GeluTanh, 1>(table, Pointwise::kGeluTanh, 1.0, Floats());
  add<GeluTanhGrad, 2>(table, Pointwise::kGeluTanhGrad, 1.2, Floats());
  add<Silu, 1>(table, Pointwise::kSilu, 0.9, Floats());
  add<SiluGrad, 2>(table, Pointwise::kSiluGrad, 1.0, Floats());
  add_typed<Leaky, 1>(table, Pointwise::kLeaky, 0.1, Floats());
  add_typed<LeakyGrad, 2>(table, Pointwise::kLeakyGrad, 0.1, Floats());
  add_typed<Elu, 1>(table, Pointwise::kElu, 0.7, Floats());
  add_typed<EluGrad, 2>(table, Pointwise::kEluGrad, 0.7, Floats());
  add<Selu, 1>(table, Pointwise::kSelu, 0.7, Floats());
  add<Prelu, 2>(table, Pointwise::kPrelu, 0.1, Floats());
  add<PreluSlope, 2>(table, Pointwise::kPreluSlope, 0.1, Floats());
  add<Softsign, 1>(table, Pointwise::kSoftsign, 0.3, Floats());
  add<SoftsignGrad, 2>(table, Pointwise::kSoftsignGrad, 0.3, Floats());
  add_typed<HardSigmoid, 1>(table, Pointwise::kHardSigmoid, 0.1, Floats());
  add_typed<HardSigmoidGrad, 2>(table, Pointwise::kHardSigmoidGrad, 0.1, Floats());
  add_typed<SmoothL1, 1>(table, Pointwise::kSmoothL1, 0.2, Floats());
  add_typed<SmoothL1Grad, 2>(table, Pointwise::kSmoothL1Grad, 0.2, Floats());
  add_typed<ClipGrad, 2>(table, Pointwise::kClipGrad, 0.1, Floats());
  add<SoftreluGrad, 2>(table, Pointwise::kSoftreluGrad, 0.7, Floats());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_activation);
void fill_activation(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_activation)(table); }
}  // namespace hybridnet::kernels
#endif
