// Activations with parameters or unusual formulas, and gradients of activations. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_ACTIVATIONS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_ACTIVATIONS_H_
#undef HYBRIDNET_FUNCTORS_ACTIVATIONS_H_
#else
#define HYBRIDNET_FUNCTORS_ACTIVATIONS_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/elementwise/vector_math.h"
#include "kernels/functors/contraction.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x * Phi(x), Phi the distribution function of the normal distribution.
struct Gelu {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V half = hn::Mul(x, constant(d, 0.5));
    return hn::Mul(half, hn::Add(constant(d, 1.0), erf(d, hn::Mul(x, constant(d, 0.70710678118654752440)))));
  }
};
// dy * (Phi(x) + x * phi(x))
struct GeluGrad {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V x) const {
    const V half = constant(d, 0.5);
    const V phi = hn::MulAdd(erf(d, hn::Mul(x, constant(d, 0.70710678118654752440))), half, half);
    const V density = hn::Mul(exp(d, hn::Mul(hn::Mul(x, x), constant(d, -0.5))), constant(d, 0.39894228040143267794));
    return hn::Mul(dy, hn::MulAdd(x, density, phi));
  }
};

// The form of gelu with tanh: x / 2 * (1 + tanh(k (x + c x^3))) = x * sigmoid(2 k (x + c x^3)).
template <class D, class V>
HWY_INLINE V gelu_tanh_gate(D d, V x, V square) {
  const V twice = hn::Mul(x, constant(d, 2 * 0.79788456080286535588));
  return sigmoid(d, hn::Mul(twice, hn::MulAdd(square, constant(d, 0.044715), constant(d, 1.0))));
}
struct GeluTanh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, gelu_tanh_gate(d, x, hn::Mul(x, x)));
  }
};
struct GeluTanhGrad {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V x) const {
    const V square = hn::Mul(x, x), gate = gelu_tanh_gate(d, x, square);
    const V inner = hn::MulAdd(square, constant(d, 3 * 0.044715), constant(d, 1.0));
    const V slope = hn::Mul(hn::Mul(x, constant(d, 2 * 0.79788456080286535588)), inner);
    // Far from 0 the gate is exactly 0 or 1, and its factor may be infinite.
    const V step = hn::Mul(gate, hn::Sub(constant(d, 1.0), gate));
    const V bend = hn::IfThenElse(hn::Eq(step, hn::Zero(d)), hn::Zero(d), hn::Mul(slope, step));
    return hn::Mul(dy, hn::Add(gate, bend));
  }
};

// x * sigmoid(x)
struct Silu {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, sigmoid(d, x));
  }
};
struct SiluGrad {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V x) const {
    const V gate = sigmoid(d, x);
    return hn::Mul(dy, hn::Mul(gate, hn::MulAdd(x, hn::Sub(constant(d, 1.0), gate), constant(d, 1.0))));
  }
};

template <class T>
struct Leaky {
  static constexpr int kScalars = 1;
  explicit Leaky(const double* scalars) : slope(static_cast<T>(scalars[0])) {}
  HWY_INLINE T operator()(T x) const { return x > T(0) ? x : x * slope; }
  T slope;
};
template <class T>
struct LeakyGrad {
  static constexpr int kScalars = 1;
  explicit LeakyGrad(const double* scalars) : slope(static_cast<T>(scalars[0])) {}
  HWY_INLINE T operator()(T dy, T x) const { return x > T(0) ? dy : dy * slope; }
  T slope;
};

template <class T>
struct Elu {
  static constexpr bool kVector = true;
  static constexpr int kScalars = 1;
  explicit Elu(const double* scalars) : slope(static_cast<T>(scalars[0])) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(hn::Set(d, slope), expm1(d, x)));
  }
  T slope;
};
// dy * scale * (1 above 0, slope * e^x below)
template <class T>
struct EluGrad {
  static constexpr bool kVector = true;
  static constexpr int kScalars = 2;
  explicit EluGrad(const double* scalars)
      : below(static_cast<T>(scalars[0] * scalars[1])), above(static_cast<T>(scalars[1])) {}
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V x) const {
    return hn::Mul(dy,
                   hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, above), hn::Mul(hn::Set(d, below), exp(d, x))));
  }
  T below, above;
};

// Constants: Klambauer et al., Self-Normalizing Neural Networks.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946, kSeluAlpha = 1.6732632423543772848170429916717;
struct Selu {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V negative = hn::Mul(constant(d, kSeluAlpha), expm1(d, x));
    return hn::Mul(constant(d, kSeluScale), hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, negative));
  }
};
struct Softsign {
  template <class T>
  HWY_INLINE T operator()(T x) const {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
};
struct SoftsignGrad {  // y: the output; 1 / (1 + |x|) is 1 - |y|
  template <class T>
  HWY_INLINE T operator()(T dy, T y) const {
    const T m = T(1) - (y < T(0) ? -y : y);
    return dy * (m * m);
  }
};

// x for x >= 0, else x times the slope of the element.
struct Prelu {
  template <class T>
  HWY_INLINE T operator()(T x, T slope) const {
    return x > T(0) ? x : x * slope;
  }
};

// The gradient of Prelu with respect to the slope.
struct PreluSlope {
  template <class T>
  HWY_INLINE T operator()(T x, T slope) const {
    return x > T(0) ? T(1) : slope;
  }
};

template <class T>
struct HardSigmoid {
  static constexpr int kScalars = 2;
  explicit HardSigmoid(const double* scalars) : alpha(static_cast<T>(scalars[0])), beta(static_cast<T>(scalars[1])) {}
  HWY_INLINE T operator()(T x) const {
    const T y = product_plus(alpha, x, beta);
    const T low = y < T(0) ? T(0) : y;
    return low > T(1) ? T(1) : low;
  }
  T alpha, beta;
};
template <class T>
struct HardSigmoidGrad {  // y: the output
  static constexpr int kScalars = 1;
  explicit HardSigmoidGrad(const double* scalars) : alpha(static_cast<T>(scalars[0])) {}
  HWY_INLINE T operator()(T dy, T y) const { return (y > T(0)) & (y < T(1)) ? dy * alpha : T(0); }
  T alpha;
};

// 0.5 (sigma x)^2 where |x| < 1 / sigma^2, |x| - 0.5 / sigma^2 otherwise.
template <class T>
struct SmoothL1 {
  static constexpr int kScalars = 1;
  explicit SmoothL1(const double* scalars) : square(static_cast<T>(scalars[0] * scalars[0])), bound(T(1) / square) {}
  HWY_INLINE T operator()(T x) const {
    const T m = x < T(0) ? -x : x;
    return m > bound ? m - T(0.5) * bound : T(0.5) * x * x * square;
  }
  T square, bound;
};
template <class T>
struct SmoothL1Grad {
  static constexpr int kScalars = 1;
  explicit SmoothL1Grad(const double* scalars)
      : square(static_cast<T>(scalars[0] * scalars[0])), bound(T(1) / square) {}
  HWY_INLINE T operator()(T dy, T x) const { return dy * (x > bound ? T(1) : x < -bound ? T(-1) : square * x); }
  T square, bound;
};

template <class T>
struct ClipGrad {  // x: the input; the bounds themselves pass the gradient
  static constexpr int kScalars = 2;
  explicit ClipGrad(const double* scalars) : low(static_cast<T>(scalars[0])), high(static_cast<T>(scalars[1])) {}
  HWY_INLINE T operator()(T dy, T x) const { return (x > high) | (x < low) ? T(0) : dy; }
  T low, high;
};

struct SoftreluGrad {  // y: the output; 1 - e^-y
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::Neg(expm1(d, hn::Neg(y))));
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
