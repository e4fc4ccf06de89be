// Parameters of LeakyReLU, and its forms that depend on the data alone.
#pragma once

#include "hybridnet/op.h"
#include "kernels/elementwise/pointwise.h"

namespace hybridnet::ops {

enum class LeakyType : int32_t { kElu, kGelu, kLeaky, kPrelu, kRrelu, kSelu };

struct LeakyReluParams {
  LeakyType act_type;
  double slope, lower_bound, upper_bound;
  static void describe(ParamSchema<LeakyReluParams>& schema);
  void scalars(double* s) const { s[0] = slope, s[1] = 1; }
};

// Parameters of leaky whose slope is the mean of the slopes that rrelu draws.
LeakyReluParams mean_of_random(LeakyReluParams p);

// For leaky, elu, selu and gelu; any other type is treated as leaky.
const kernels::SpanLoops& plain_leaky_loops(const LeakyReluParams& p);
// Layers have gelu, elu and leaky.
std::optional<LayerActivation> leaky_layer_form(const LeakyReluParams& p);
void run_plain_leaky(const LeakyReluParams& p, const KernelArgs& a);
Value plain_leaky_gradient(const LeakyReluParams& p, const Value& dy, const Value& x);

}  // namespace hybridnet::ops
