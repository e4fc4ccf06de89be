// Operations that a product applies to its result before storing it.
#pragma once

#include <limits>
#include <optional>

#include "hybridnet/error.h"
#include "kernels/dnnl/program.h"
#include "kernels/elementwise/activation_kind.h"

namespace hybridnet::onednn {

using kernels::ActivationKind;

struct Activation {
  ActivationKind kind = ActivationKind::kNone;
  float alpha = 0, beta = 0;  // kClip: bounds; kElu, kLeaky: slope in alpha
};

struct Bounds {
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
};

// The bounds to which the activation limits its argument, or nothing for other activations. For kernels that end in min
// and max.
inline std::optional<Bounds> bounds_of(const Activation& a) {
  switch (a.kind) {
    case ActivationKind::kNone:
      return Bounds{};
    case ActivationKind::kRelu:
      return Bounds{.low = 0};
    case ActivationKind::kClip:
      return Bounds{a.alpha, a.beta};
    default:
      return std::nullopt;
  }
}

// Applies the same function in a separate pass, in place, to n values of any floating dtype.
void apply(const Activation& a, DType dtype, void* data, int64_t n);
// out = activation(sums) if the sum or the value in out is infinite or NaN; the other values of out stay.
void apply_where_not_finite(const Activation& a, DType dtype, const void* sums, void* out, int64_t n);

// The appended operation loses NaN: its caller must watch for them (base/float_watch.h) and repair the results.
inline void append(dnnl::post_ops& ops, const Activation& a) {
  using dnnl::algorithm;
  switch (a.kind) {
    case ActivationKind::kNone:
      return;
    case ActivationKind::kRelu:
      return ops.append_eltwise(algorithm::eltwise_relu, 0, 0);
    case ActivationKind::kSigmoid:
      return ops.append_eltwise(algorithm::eltwise_logistic, 0, 0);
    case ActivationKind::kTanh:
      return ops.append_eltwise(algorithm::eltwise_tanh, 0, 0);
    case ActivationKind::kSoftRelu:
      return ops.append_eltwise(algorithm::eltwise_soft_relu, 1, 0);
    case ActivationKind::kSoftSign:
      throw UnsupportedError({.input = "act_type", .expected = "a function of oneDNN", .given = "softsign"});
    case ActivationKind::kGelu:
      return ops.append_eltwise(algorithm::eltwise_gelu_erf, 0, 0);
    case ActivationKind::kGeluTanh:
      return ops.append_eltwise(algorithm::eltwise_gelu_tanh, 0, 0);
    case ActivationKind::kSilu:
      return ops.append_eltwise(algorithm::eltwise_swish, 1, 0);
    case ActivationKind::kClip:
      return ops.append_eltwise(algorithm::eltwise_clip, a.alpha, a.beta);
    case ActivationKind::kElu:
      return ops.append_eltwise(algorithm::eltwise_elu, a.alpha, 0);
    case ActivationKind::kLeaky:
      return ops.append_eltwise(algorithm::eltwise_relu, a.alpha, 0);
  }
}

}  // namespace hybridnet::onednn
