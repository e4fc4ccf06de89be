// The part of the C++ standard library that kernel texts use, for NVRTC, which has none. The text is known there as
// <cmath>, <limits>, <type_traits>, ... (device::kernel_headers()); C++ compilers use their own headers.
#ifndef HYBRIDNET_DEVICE_STANDARD_H_
#define HYBRIDNET_DEVICE_STANDARD_H_

#ifdef __CUDACC_RTC__

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned;
using int64_t = long long;
using uint64_t = unsigned long long;
using intptr_t = long long;
using uintptr_t = unsigned long long;

namespace std {

using ::int16_t, ::int32_t, ::int64_t, ::int8_t, ::size_t, ::uint16_t, ::uint32_t, ::uint64_t, ::uint8_t;
using nullptr_t = decltype(nullptr);

// ---- <type_traits>

template <class T, T kValue>
struct integral_constant {
  static constexpr T value = kValue;
};
template <bool kValue>
using bool_constant = integral_constant<bool, kValue>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class T, class U>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T, class U>
struct is_same : bool_constant<is_same_v<T, U>> {};

template <class T>
struct remove_const {
  using type = T;
};
template <class T>
struct remove_const<const T> {
  using type = T;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
struct remove_reference {
  using type = T;
};
template <class T>
struct remove_reference<T&> {
  using type = T;
};
template <class T>
struct remove_reference<T&&> {
  using type = T;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_cv_t = remove_const_t<T>;
template <class T>
using decay_t = remove_const_t<remove_reference_t<T>>;

template <bool kFirst, class T, class U>
struct conditional {
  using type = T;
};
template <class T, class U>
struct conditional<false, T, U> {
  using type = U;
};
template <bool kFirst, class T, class U>
using conditional_t = typename conditional<kFirst, T, U>::type;
template <bool kCondition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool kCondition, class T = void>
using enable_if_t = typename enable_if<kCondition, T>::type;
template <class...>
using void_t = void;

template <class T>
inline constexpr bool is_floating_point_v = is_same_v<remove_const_t<T>, float> || is_same_v<remove_const_t<T>, double>;
template <class T>
struct is_floating_point : bool_constant<is_floating_point_v<T>> {};

// The signed and the unsigned form of each integer type; T itself is one of them.
template <class T>
struct integer_forms;
template <class T, class U>
struct integer_pair {
  using signed_type = T;
  using unsigned_type = U;
};
template <>
struct integer_forms<signed char> : integer_pair<signed char, unsigned char> {};
template <>
struct integer_forms<unsigned char> : integer_pair<signed char, unsigned char> {};
template <>
struct integer_forms<char> : integer_pair<signed char, unsigned char> {};
template <>
struct integer_forms<short> : integer_pair<short, unsigned short> {};
template <>
struct integer_forms<unsigned short> : integer_pair<short, unsigned short> {};
template <>
struct integer_forms<int> : integer_pair<int, unsigned> {};
template <>
struct integer_forms<unsigned> : integer_pair<int, unsigned> {};
template <>
struct integer_forms<long> : integer_pair<long, unsigned long> {};
template <>
struct integer_forms<unsigned long> : integer_pair<long, unsigned long> {};
template <>
struct integer_forms<long long> : integer_pair<long long, unsigned long long> {};
template <>
struct integer_forms<unsigned long long> : integer_pair<long long, unsigned long long> {};
template <class T>
using make_signed_t = typename integer_forms<T>::signed_type;
template <class T>
using make_unsigned_t = typename integer_forms<T>::unsigned_type;

template <class T, class = void>
inline constexpr bool is_integral_v = is_same_v<remove_const_t<T>, bool>;
template <class T>
inline constexpr bool is_integral_v<T, void_t<typename integer_forms<remove_const_t<T>>::signed_type>> = true;
template <class T>
struct is_integral : bool_constant<is_integral_v<T>> {};
template <class T>
inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;

template <class T, bool = is_arithmetic_v<T>>
inline constexpr bool is_signed_v = T(-1) < T(0);
template <class T>
inline constexpr bool is_signed_v<T, false> = false;
template <class T>
inline constexpr bool is_unsigned_v = is_integral_v<T> && !is_signed_v<T>;
template <class T>
struct is_signed : bool_constant<is_signed_v<T>> {};
template <class T>
struct is_unsigned : bool_constant<is_unsigned_v<T>> {};

// ---- <utility>, <algorithm>

template <class T>
T&& declval();
template <class T>
constexpr remove_reference_t<T>&& move(T&& x) {
  return static_cast<remove_reference_t<T>&&>(x);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>& x) {
  return static_cast<T&&>(x);
}
template <class T>
constexpr void swap(T& a, T& b) {
  T first = a;
  a = b;
  b = first;
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}

template <class T, T... kValues>
struct integer_sequence {};
template <size_t... K>
using index_sequence = integer_sequence<size_t, K...>;
template <size_t N, size_t... K>
struct count_up : count_up<N - 1, N - 1, K...> {};
template <size_t... K>
struct count_up<0, K...> {
  using type = index_sequence<K...>;
};
template <size_t N>
using make_index_sequence = typename count_up<N>::type;

// ---- <limits>

template <class T, bool = is_integral_v<T>>
struct numeric_limits;
template <class T>
struct numeric_limits<T, true> {
  static constexpr bool is_integer = true, is_signed = is_signed_v<T>;
  static constexpr int digits = is_same_v<T, bool> ? 1 : static_cast<int>(sizeof(T)) * 8 - (is_signed ? 1 : 0);
  static constexpr T max() { return static_cast<T>(~0ull >> (64 - digits)); }
  static constexpr T min() { return is_signed ? static_cast<T>(-max() - 1) : T(0); }
  static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<float, false> {
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr int digits = 24;
  static constexpr float max() { return 0x1.fffffep127f; }
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float lowest() { return -max(); }
  static constexpr float epsilon() { return 0x1p-23f; }
  static constexpr float denorm_min() { return 0x1p-149f; }
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
  static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7fc00000u); }
};
template <>
struct numeric_limits<double, false> {
  static constexpr bool is_integer = false, is_signed = true;
  static constexpr int digits = 53;
  static constexpr double max() { return 0x1.fffffffffffffp1023; }
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double lowest() { return -max(); }
  static constexpr double epsilon() { return 0x1p-52; }
  static constexpr double denorm_min() { return 0x0.0000000000001p-1022; }
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
  static constexpr double quiet_NaN() { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }
};

// ---- <cmath>: the float form of a function is the one with the letter f, the double form has its plain name

inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline int abs(int x) { return x < 0 ? -x : x; }
inline long long abs(long long x) { return x < 0 ? -x : x; }
inline float fabs(float x) { return ::fabsf(x); }
inline double fabs(double x) { return ::fabs(x); }
inline float sqrt(float x) { return ::sqrtf(x); }
inline double sqrt(double x) { return ::sqrt(x); }
inline float cbrt(float x) { return ::cbrtf(x); }
inline double cbrt(double x) { return ::cbrt(x); }
inline float floor(float x) { return ::floorf(x); }
inline double floor(double x) { return ::floor(x); }
inline float ceil(float x) { return ::ceilf(x); }
inline double ceil(double x) { return ::ceil(x); }
inline float trunc(float x) { return ::truncf(x); }
inline double trunc(double x) { return ::trunc(x); }
inline float rint(float x) { return ::rintf(x); }
inline double rint(double x) { return ::rint(x); }
inline float round(float x) { return ::roundf(x); }
inline double round(double x) { return ::round(x); }
inline float exp(float x) { return ::expf(x); }
inline double exp(double x) { return ::exp(x); }
inline float exp2(float x) { return ::exp2f(x); }
inline double exp2(double x) { return ::exp2(x); }
inline float expm1(float x) { return ::expm1f(x); }
inline double expm1(double x) { return ::expm1(x); }
inline float log(float x) { return ::logf(x); }
inline double log(double x) { return ::log(x); }
inline float log1p(float x) { return ::log1pf(x); }
inline double log1p(double x) { return ::log1p(x); }
inline float log2(float x) { return ::log2f(x); }
inline double log2(double x) { return ::log2(x); }
inline float log10(float x) { return ::log10f(x); }
inline double log10(double x) { return ::log10(x); }
inline float sin(float x) { return ::sinf(x); }
inline double sin(double x) { return ::sin(x); }
inline float cos(float x) { return ::cosf(x); }
inline double cos(double x) { return ::cos(x); }
inline float tan(float x) { return ::tanf(x); }
inline double tan(double x) { return ::tan(x); }
inline float tanh(float x) { return ::tanhf(x); }
inline double tanh(double x) { return ::tanh(x); }
inline float erf(float x) { return ::erff(x); }
inline double erf(double x) { return ::erf(x); }
inline float tgamma(float x) { return ::tgammaf(x); }
inline double tgamma(double x) { return ::tgamma(x); }
inline double tgamma(int x) { return ::tgamma(static_cast<double>(x)); }
inline float lgamma(float x) { return ::lgammaf(x); }
inline double lgamma(double x) { return ::lgamma(x); }
inline float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return ::fma(a, b, c); }
inline float fmod(float a, float b) { return ::fmodf(a, b); }
inline double fmod(double a, double b) { return ::fmod(a, b); }
inline float pow(float a, float b) { return ::powf(a, b); }
inline double pow(double a, double b) { return ::pow(a, b); }
inline double pow(double a, int b) { return ::pow(a, static_cast<double>(b)); }
inline float hypot(float a, float b) { return ::hypotf(a, b); }
inline double hypot(double a, double b) { return ::hypot(a, b); }
inline float atan2(float a, float b) { return ::atan2f(a, b); }
inline double atan2(double a, double b) { return ::atan2(a, b); }
inline float copysign(float a, float b) { return ::copysignf(a, b); }
inline double copysign(double a, double b) { return ::copysign(a, b); }
template <class T>
inline bool isnan(T x) {
  return x != x;
}
template <class T>
inline bool isinf(T x) {
  return fabs(x) == numeric_limits<T>::infinity();
}
template <class T>
inline bool isfinite(T x) {
  return fabs(x) < numeric_limits<T>::infinity();
}

// ---- <cstring>

using ::memcpy;
using ::memset;

}  // namespace std

#endif  // __CUDACC_RTC__
#endif  // HYBRIDNET_DEVICE_STANDARD_H_
