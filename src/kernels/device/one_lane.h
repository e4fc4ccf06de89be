// A target of Highway with one lane: a vector is a number and a mask is a bool, so that one thread of a device computes
// one element with the functions that CPUs run in vectors (vector_math.h, kernels/functors, Highway's math-inl.h).
// Kernel texts know it as "hwy/highway.h"; it compiles under NVRTC and under C++ compilers (tests).
// Bits: those of the CPU's targets with FMA. MulAdd and its variants round once, all other operations are compiled
// without contraction (--fmad=false, -ffp-contract=off). Min, Max and conversions treat NaN and overflow as x86 does.
#ifndef HYBRIDNET_DEVICE_ONE_LANE_H_
#define HYBRIDNET_DEVICE_ONE_LANE_H_

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#define HYBRIDNET_ONE_LANE 1
#define HWY_NAMESPACE N_ONE_LANE
#define HWY_TARGET 1
#define HWY_HAVE_FLOAT64 1
#define HWY_HAVE_INTEGER64 1
#define HWY_MAX_BYTES 8
#define HWY_ALIGN
#define HWY_ATTR
#define HWY_MAYBE_UNUSED
#define HWY_RESTRICT __restrict__
#define HWY_LIKELY(condition) (condition)
#define HWY_UNLIKELY(condition) (condition)
#define HWY_BEFORE_NAMESPACE() static_assert(true, "")
#define HWY_AFTER_NAMESPACE() static_assert(true, "")
#ifdef __CUDACC_RTC__
#define HWY_INLINE __forceinline__
#else
#define HWY_INLINE inline __attribute__((always_inline))
#endif
#define HWY_NOINLINE inline
#define HWY_API HWY_INLINE

namespace hwy {

template <size_t kBytes>
struct UnsignedOfSize;
template <>
struct UnsignedOfSize<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOfSize<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOfSize<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOfSize<8> {
  using type = uint64_t;
};
template <class T>
using MakeUnsigned = typename UnsignedOfSize<sizeof(T)>::type;
template <class T>
using MakeSigned = std::make_signed_t<MakeUnsigned<T>>;

namespace HWY_NAMESPACE {

// ---- tags: the type of a lane

template <class Lane>
struct Simd {
  using T = Lane;
};
template <class T>
using ScalableTag = Simd<T>;
template <class D>
using TFromD = typename D::T;
template <class D>
using Vec = typename D::T;
template <class D>
using VFromD = typename D::T;
template <class D>
using Mask = bool;
template <class V>
using VecArg = V;
template <class T, class D>
using Rebind = Simd<T>;
template <class D>
using RebindToSigned = Simd<MakeSigned<TFromD<D>>>;
template <class D>
using RebindToUnsigned = Simd<MakeUnsigned<TFromD<D>>>;
// A vector of floats has no half and no wider form of fewer lanes here: both halves are the lane.
template <class T, class D>
using Repartition = Simd<T>;
template <class D>
using Half = D;
template <class D>
HWY_API constexpr size_t Lanes(D) {
  return 1;
}
template <class D>
HWY_API constexpr size_t MaxLanes(D) {
  return 1;
}

// ---- values and memory

template <class D>
HWY_API constexpr Vec<D> Set(D, TFromD<D> x) {
  return x;
}
template <class D>
HWY_API constexpr Vec<D> Zero(D) {
  return TFromD<D>(0);
}
template <class D>
HWY_API Vec<D> Load(D, const TFromD<D>* from) {
  return *from;
}
template <class D>
HWY_API Vec<D> LoadU(D, const TFromD<D>* from) {
  return *from;
}
template <class D>
HWY_API void Store(Vec<D> x, D, TFromD<D>* to) {
  *to = x;
}
template <class D>
HWY_API void StoreU(Vec<D> x, D, TFromD<D>* to) {
  *to = x;
}
template <class T>
HWY_API T GetLane(T x) {
  return x;
}
template <class D, class V>
HWY_API V LowerHalf(D, V x) {
  return x;
}
template <class D, class V>
HWY_API V UpperHalf(D, V x) {
  return x;
}
template <class D, class V>
HWY_API V Combine(D, V, V low) {
  return low;
}

// ---- bits

template <class D, class V>
HWY_API Vec<D> BitCast(D, V x) {
  static_assert(sizeof(Vec<D>) == sizeof(V), "BitCast keeps the size");
  Vec<D> y;
  memcpy(&y, &x, sizeof(y));
  return y;
}
template <class T>
HWY_API MakeUnsigned<T> BitsOf(T x) {
  return BitCast(Simd<MakeUnsigned<T>>(), x);
}
template <class T>
HWY_API T And(T a, T b) {
  return BitCast(Simd<T>(), static_cast<MakeUnsigned<T>>(BitsOf(a) & BitsOf(b)));
}
template <class T>
HWY_API T Or(T a, T b) {
  return BitCast(Simd<T>(), static_cast<MakeUnsigned<T>>(BitsOf(a) | BitsOf(b)));
}
template <class T>
HWY_API T Xor(T a, T b) {
  return BitCast(Simd<T>(), static_cast<MakeUnsigned<T>>(BitsOf(a) ^ BitsOf(b)));
}
template <class T>
HWY_API T Not(T a) {
  return BitCast(Simd<T>(), static_cast<MakeUnsigned<T>>(~BitsOf(a)));
}
template <class T>
HWY_API T AndNot(T a, T b) {  // ~a & b
  return And(Not(a), b);
}
HWY_API bool And(bool a, bool b) { return a & b; }
HWY_API bool Or(bool a, bool b) { return a | b; }
HWY_API bool Xor(bool a, bool b) { return a != b; }
HWY_API bool Not(bool a) { return !a; }
HWY_API bool AndNot(bool a, bool b) { return !a & b; }
template <class D>
HWY_API Vec<D> SignBit(D d) {
  return BitCast(d, static_cast<MakeUnsigned<TFromD<D>>>(MakeUnsigned<TFromD<D>>(1) << (sizeof(TFromD<D>) * 8 - 1)));
}
template <int kBits, class T>
HWY_API T ShiftLeft(T x) {
  return static_cast<T>(static_cast<MakeUnsigned<T>>(x) << kBits);
}
template <int kBits, class T>
HWY_API T ShiftRight(T x) {
  return static_cast<T>(x >> kBits);
}

// ---- comparisons and choices

template <class T>
HWY_API bool Eq(T a, T b) {
  return a == b;
}
template <class T>
HWY_API bool Ne(T a, T b) {
  return a != b;
}
template <class T>
HWY_API bool Lt(T a, T b) {
  return a < b;
}
template <class T>
HWY_API bool Le(T a, T b) {
  return a <= b;
}
template <class T>
HWY_API bool Gt(T a, T b) {
  return a > b;
}
template <class T>
HWY_API bool Ge(T a, T b) {
  return a >= b;
}
template <class T>
HWY_API bool IsNaN(T a) {
  return a != a;
}
template <class V>
HWY_API V IfThenElse(bool mask, V yes, V no) {
  return mask ? yes : no;
}
template <class V>
HWY_API V IfThenElseZero(bool mask, V yes) {
  return mask ? yes : V(0);
}
template <class V>
HWY_API V IfThenZeroElse(bool mask, V no) {
  return mask ? V(0) : no;
}
template <class D>
HWY_API bool AllFalse(D, bool mask) {
  return !mask;
}
template <class D>
HWY_API bool AllTrue(D, bool mask) {
  return mask;
}
// The second operand if one is NaN, and if both are zero.
template <class T>
HWY_API T Min(T a, T b) {
  return a < b ? a : b;
}
template <class T>
HWY_API T Max(T a, T b) {
  return a > b ? a : b;
}

// ---- arithmetic; integers wrap around

template <class T>
HWY_API T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(MakeUnsigned<T>(a) + MakeUnsigned<T>(b));
  return a + b;
}
template <class T>
HWY_API T Sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(MakeUnsigned<T>(a) - MakeUnsigned<T>(b));
  return a - b;
}
template <class T>
HWY_API T Mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(uint64_t(a) * uint64_t(b));
  return a * b;
}
template <class T>
HWY_API T Div(T a, T b) {
  return a / b;
}
template <class T>
HWY_API T Neg(T a) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(0 - MakeUnsigned<T>(a));
  return -a;
}
template <class T>
HWY_API T Abs(T a) {
  if constexpr (std::is_integral_v<T>) return a < T(0) ? Neg(a) : a;
  return std::fabs(a);
}
template <class T>
HWY_API T CopySign(T magnitude, T sign) {
  return std::copysign(magnitude, sign);
}
template <class T>
HWY_API T CopySignToAbs(T magnitude, T sign) {
  return std::copysign(magnitude, sign);
}
template <class T>
HWY_API T Sqrt(T a) {
  return std::sqrt(a);
}
template <class T>
HWY_API T MulAdd(T a, T b, T c) {  // a b + c
  return std::fma(a, b, c);
}
template <class T>
HWY_API T NegMulAdd(T a, T b, T c) {  // c - a b
  return std::fma(-a, b, c);
}
template <class T>
HWY_API T MulSub(T a, T b, T c) {  // a b - c
  return std::fma(a, b, -c);
}
template <class T>
HWY_API T NegMulSub(T a, T b, T c) {  // -a b - c
  return std::fma(-a, b, -c);
}
template <class T>
HWY_API T Floor(T a) {
  return std::floor(a);
}
template <class T>
HWY_API T Ceil(T a) {
  return std::ceil(a);
}
template <class T>
HWY_API T Trunc(T a) {
  return std::trunc(a);
}
template <class T>
HWY_API T Round(T a) {  // halves go to the even neighbor
  return std::rint(a);
}

// ---- conversions: to integers they truncate and saturate; NaN becomes a limit

template <class I, class F>
HWY_API I Saturated(F x, bool nan_is_least) {
  constexpr F kLow = static_cast<F>(std::numeric_limits<I>::min());
  if (x >= kLow && x < -kLow) return static_cast<I>(x);
  return x < F(0) || (x != x && nan_is_least) ? std::numeric_limits<I>::min() : std::numeric_limits<I>::max();
}
HWY_API float ConvertTo(Simd<float>, int32_t x) { return static_cast<float>(x); }
HWY_API double ConvertTo(Simd<double>, int64_t x) { return static_cast<double>(x); }
HWY_API int32_t ConvertTo(Simd<int32_t>, float x) { return Saturated<int32_t>(x, std::copysign(1.0f, x) < 0); }
HWY_API int64_t ConvertTo(Simd<int64_t>, double x) { return Saturated<int64_t>(x, std::copysign(1.0, x) < 0); }
HWY_API int32_t NearestInt(float x) { return ConvertTo(Simd<int32_t>(), std::rint(x)); }
HWY_API double PromoteTo(Simd<double>, float x) { return static_cast<double>(x); }
HWY_API double PromoteTo(Simd<double>, int32_t x) { return static_cast<double>(x); }
HWY_API int64_t PromoteTo(Simd<int64_t>, int32_t x) { return static_cast<int64_t>(x); }
HWY_API float DemoteTo(Simd<float>, double x) { return static_cast<float>(x); }
HWY_API int32_t DemoteTo(Simd<int32_t>, double x) { return Saturated<int32_t>(x, false); }

}  // namespace HWY_NAMESPACE
}  // namespace hwy

#endif  // HYBRIDNET_DEVICE_ONE_LANE_H_
