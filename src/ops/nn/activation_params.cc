#include "ops/nn/activation_params.h"

namespace hybridnet::ops {
namespace {

using kernels::ActivationKind;
using onednn::Activation;

const OpRef kSigmoid{"sigmoid"}, kTanh{"tanh"}, kErf{"erf"}, kExp{"exp"}, kReluGrad{"_backward_relu"}, kAbs{"abs"},
    kClipGrad{"_backward_clip"};

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kGeluCubic = 0.044715;  // Hendrycks and Gimpel, "Gaussian Error Linear Units", section 2

}  // namespace

void apply_activation(const Activation& a, float* data, int64_t n) { onednn::apply(a, DType::kFloat32, data, n); }
void apply_activation(const Activation& a, double* data, int64_t n) { onednn::apply(a, DType::kFloat64, data, n); }

bool has_gradient_through_output(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::kNone:
    case ActivationKind::kRelu:
    case ActivationKind::kSigmoid:
    case ActivationKind::kTanh:
    case ActivationKind::kSoftRelu:
      return true;
    default:
      return false;  // not monotonic, depends on the sign of the slope parameter, or maps other values to a bound
  }
}

Value gradient_through_output(const FusedActivation& a, const Value& y, const Value& d) {
  switch (a.act_type) {
    case ActivationKind::kRelu:
      return call(kReluGrad, {d, y});
    case ActivationKind::kSigmoid:
      return d * (y * (1.0 - y));
    case ActivationKind::kTanh:
      return d * (1.0 - y * y);
    case ActivationKind::kSoftRelu:
      return d * (1.0 - call(kExp, {-y}));
    default:
      return d;
  }
}

Value gradient_through_input(const FusedActivation& a, const Value& x, const Value& d) {
  switch (a.act_type) {
    case ActivationKind::kNone:
      return d;
    case ActivationKind::kRelu:
      return call(kReluGrad, {d, x});
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
    case ActivationKind::kSoftSign: {
      const Value scale = call(kAbs, {x}) + 1.0;
      return d / (scale * scale);
    }
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
      return call(kClipGrad, {d, x}, {{"a_min", a.act_alpha}, {"a_max", a.act_beta}});
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
