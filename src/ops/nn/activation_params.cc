#include "ops/nn/activation_params.h"

#include "kernels/pointwise.h"

namespace hybridnet::ops {
namespace {

using onednn::Activation;
using onednn::ActivationKind;

const OpRef kSigmoid{"sigmoid"}, kTanh{"tanh"}, kErf{"erf"}, kExp{"exp"};

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kGeluCubic = 0.044715;  // Hendrycks and Gimpel, "Gaussian Error Linear Units", section 2

const kernels::SpanLoops& loops_of(ActivationKind kind) {
  using kernels::Pointwise;
  switch (kind) {
    case ActivationKind::kNone:
      break;
    case ActivationKind::kRelu:
      return kernels::loops(Pointwise::kRelu);
    case ActivationKind::kSigmoid:
      return kernels::loops(Pointwise::kSigmoid);
    case ActivationKind::kTanh:
      return kernels::loops(Pointwise::kTanh);
    case ActivationKind::kSoftRelu:
      return kernels::loops(Pointwise::kSoftrelu);
    case ActivationKind::kGelu:
      return kernels::loops(Pointwise::kGelu);
    case ActivationKind::kGeluTanh:
      return kernels::loops(Pointwise::kGeluTanh);
    case ActivationKind::kSilu:
      return kernels::loops(Pointwise::kSilu);
    case ActivationKind::kClip:
      return kernels::loops(Pointwise::kClip);
    case ActivationKind::kElu:
      return kernels::loops(Pointwise::kElu);
    case ActivationKind::kLeaky:
      return kernels::loops(Pointwise::kLeaky);
  }
  return kernels::loops(Pointwise::kCopy);
}

void apply(const Activation& a, DType dtype, void* data, int64_t n) {
  if (a.kind == ActivationKind::kNone) return;
  const double scalars[] = {a.alpha, a.beta};
  const void* const in[] = {data};
  kernels::apply_parallel(loops_of(a.kind), dtype, in, data, n, scalars);
}

Value inside(const Value& y, double low, double high) { return greater(y, low) * lesser(y, high); }

}  // namespace

void apply_activation(const Activation& a, float* data, int64_t n) { apply(a, DType::kFloat32, data, n); }
void apply_activation(const Activation& a, double* data, int64_t n) { apply(a, DType::kFloat64, data, n); }

bool has_gradient_through_output(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
    case ActivationKind::kRelu:
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSoftRelu:
    case ActivationKind::kClip:
      return true;
    default:
      return false;  // not monotonous, or the sign of the slope parameter decides
  }
}

Value gradient_through_output(const FusedActivation& a, const Value& y, const Value& d) {
  switch (a.act_type) {
    case ActivationKind::kRelu:
      return d * greater(y, 0.0);
    case ActivationKind::kSigmoid:
      return d * (y * (1.0 - y));
    case ActivationKind::kTanh:
      return d * (1.0 - y * y);
    case ActivationKind::kSoftRelu:
      return d * (1.0 - call(kExp, {-y}));
    case ActivationKind::kClip:
      return d * inside(y, a.act_alpha, a.act_beta);
    default:
      return d;
  }
}

Value gradient_through_input(const FusedActivation& a, const Value& x, const Value& d) {
  switch (a.act_type) {
    case ActivationKind::kNone:
      return d;
    case ActivationKind::kRelu:
      return d * greater(x, 0.0);
    case ActivationKind::kSigmoid: {
      const Value s = call(kSigmoid, {x});
      return d * (s * (1.0 - s));
    }
    case ActivationKind::kTanh: {
      const Value t = call(kTanh, {x});
      return d * (1.0 - t * t);
    }
    case ActivationKind::kSoftRelu:
      return d * call(kSigmoid, {x});
    case ActivationKind::kGelu: {
      const Value density = call(kExp, {(x * x) * -0.5}) * kInvSqrtTwoPi;
      return d * ((call(kErf, {x * kSqrtHalf}) + 1.0) * 0.5 + x * density);
    }
    case ActivationKind::kGeluTanh: {
      const Value square = x * x;
      const Value t = call(kTanh, {(x * kSqrtTwoOverPi) * (square * kGeluCubic + 1.0)});
      const Value inner = (square * (3.0 * kGeluCubic) + 1.0) * kSqrtTwoOverPi;
      return d * (((t + 1.0) + x * (1.0 - t * t) * inner) * 0.5);
    }
    case ActivationKind::kSilu: {
      const Value s = call(kSigmoid, {x});
      return d * (s * (x * (1.0 - s) + 1.0));
    }
    case ActivationKind::kClip:
      return d * inside(x, a.act_alpha, a.act_beta);
    case ActivationKind::kElu: {
      const Value positive = greater(x, 0.0);
      return d * where(positive, ones_like(x), call(kExp, {x}) * a.act_alpha);
    }
    case ActivationKind::kLeaky: {
      const Value positive = greater(x, 0.0);
      return d * (positive * (1.0 - a.act_alpha) + a.act_alpha);
    }
  }
  return d;
}

}  // namespace hybridnet::ops
