// Arithmetic that the rules of optimizers share (update_sgd.h, update_adam.h, update_adaptive.h), on CPUs and devices.
//
// A rule defines the update of one element:
//   template <typename A> struct Rule {                       // A: float, or double for float64 weights
//     static constexpr int kStates = 2;
//     static constexpr const char* kName = "Rule";            // for the text of a device's kernel,
//     static constexpr const char* kHeader = "update_x.h";    // which includes the header
//     template <typename P> static Rule make(const P& p, int tensor);
//     template <bool kFma = false> A step(A weight, A grad, A* state) const;  // the new weight; states are replaced
//     static constexpr int kScalars = 1;                      // and, if the rule reads arrays of one element:
//     Rule with_scalars(const double* values) const;
//   };
// kFma: products that are added are rounded once, with their sum. CPUs' loops for float32 are compiled for FMA, and the
// compiler merges the same operations there: it is false for them. Devices' compilers merge nothing.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace hybridnet {
template <typename P>
class ParamSchema;
}

namespace hybridnet::kernels {

template <bool kFma, typename A>
inline A product_plus(A a, A b, A c) {  // a b + c
  if constexpr (kFma)
    return std::fma(a, b, c);
  else
    return a * b + c;
}
template <bool kFma, typename A>
inline A product_minus(A a, A b, A c) {  // a b - c
  if constexpr (kFma)
    return std::fma(a, b, -c);
  else
    return a * b - c;
}
template <bool kFma, typename A>
inline A minus_product(A c, A a, A b) {  // c - a b
  if constexpr (kFma)
    return std::fma(-a, b, c);
  else
    return c - a * b;
}

// The first of two products is merged. All four factors are arguments, so that CPUs compute the first product first:
// that is the one that the compiler merges.
template <bool kFma, typename A>
inline A sum_of_products(A a, A b, A c, A d) {  // a b + c d
  if constexpr (kFma)
    return std::fma(a, b, c * d);
  else
    return a * b + c * d;
}
template <bool kFma, typename A>
inline A difference_of_products(A a, A b, A c, A d) {  // a b - c d
  if constexpr (kFma)
    return std::fma(a, b, -(c * d));
  else
    return a * b - c * d;
}

template <typename A>
inline A clip_to(A value, A bound) {
  return value < -bound ? -bound : value > bound ? bound : value;
}
// A negative bound means no clipping.
template <typename A>
inline A clip_bound(double clip) {
  return clip < 0 ? std::numeric_limits<A>::infinity() : static_cast<A>(clip);
}
template <typename A>
inline A sign_of(A value) {
  return static_cast<A>((value > A(0)) - (value < A(0)));
}

template <typename Rule, typename = void>
inline constexpr int scalars_of = 0;
template <typename Rule>
inline constexpr int scalars_of<Rule, std::void_t<decltype(Rule::kScalars)>> = Rule::kScalars;

// Learning rate and weight decay of tensor i, from parameters for one tensor or for many.
template <typename P, typename = void>
inline constexpr bool has_lists = false;
template <typename P>
inline constexpr bool has_lists<P, std::void_t<decltype(P::wds)>> = true;
template <typename P>
inline double lr_of(const P& p, int i) {
  if constexpr (has_lists<P>)
    return p.lrs[static_cast<size_t>(i)];
  else
    return p.lr;
}
template <typename P>
inline double wd_of(const P& p, int i) {
  if constexpr (has_lists<P>)
    return p.wds[static_cast<size_t>(i)];
  else
    return p.wd;
}

}  // namespace hybridnet::kernels
