// Functions that CUDA provides without an include: warp operations, bits, exactly rounded arithmetic, atomics.
#ifdef HN_EMBED
HN_EMBED(host_intrinsics)
#else
#pragma once

#include "host_interface.h"

template <class To, class From>
static inline To hn_bits(From from) {
  static_assert(sizeof(To) >= sizeof(From));
  To to = 0;
  memcpy(&to, &from, sizeof(From));
  return to;
}
template <class T>
static inline T hn_exchange(hn_host::Exchange kind, unsigned mask, T value, int operand, int width, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  const unsigned long long bits =
      hn_services->exchange(kind, mask, hn_bits<unsigned long long>(value), operand, width, line);
  T result;
  memcpy(&result, &bits, sizeof(T));
  return result;
}

// ---- warps
#define HN_SHUFFLE(name, kind)                                                                             \
  template <class T>                                                                                       \
  static inline T name(unsigned mask, T value, int operand, int width = 32, int line = __builtin_LINE()) { \
    return hn_exchange(hn_host::Exchange::kind, mask, value, operand, width, line);                        \
  }
HN_SHUFFLE(__shfl_xor_sync, kXor)
HN_SHUFFLE(__shfl_down_sync, kDown)
HN_SHUFFLE(__shfl_up_sync, kUp)
HN_SHUFFLE(__shfl_sync, kIndex)
#undef HN_SHUFFLE
static inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return static_cast<unsigned>(hn_services->exchange(hn_host::Exchange::kBallot, mask, predicate ? 1 : 0, 0, 32, line));
}
static inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, line) == mask;
}
static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  hn_services->exchange(hn_host::Exchange::kWarpBarrier, mask, 0, 0, 32, line);
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __trap() { hn_services->trap("the kernel called __trap()"); }
// An image with this symbol calls a function that the driver has to link.
inline __attribute__((visibility("default"))) char hn_linked_by_driver;
static inline void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  asm volatile("" : : "r"(&hn_linked_by_driver));
  hn_services->set_condition(handle, value);
}

// ---- loads
template <class T>
static inline T __ldg(const T* from) {
  return *from;
}

// ---- arithmetic, rounded to nearest
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
static inline float rsqrtf(float a) { return 1.0f / __builtin_sqrtf(a); }
static inline double rsqrt(double a) { return 1.0 / __builtin_sqrt(a); }
static inline float rsqrt(float a) { return rsqrtf(a); }

// ---- bits
static inline int __float_as_int(float x) { return hn_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return hn_bits<unsigned>(x); }
static inline float __int_as_float(int x) { return hn_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return hn_bits<float>(x); }
static inline long long __double_as_longlong(double x) { return hn_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return hn_bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline long long __mul64hi(long long a, long long b) {
  return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}

// ---- least and greatest: of equal types, as CUDA's overloads
template <class T>
static inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
static inline T max(T a, T b) {
  return a < b ? b : a;
}
static inline float min(float a, float b) { return __builtin_fminf(a, b); }
static inline float max(float a, float b) { return __builtin_fmaxf(a, b); }
static inline double min(double a, double b) { return __builtin_fmin(a, b); }
static inline double max(double a, double b) { return __builtin_fmax(a, b); }

// ---- atomics: threads run one after the other
template <class T>
static inline T atomicAdd(T* at, T value) {
  const T before = *at;
  *at = static_cast<T>(before + value);
  return before;
}
template <class T>
static inline T atomicMax(T* at, T value) {
  const T before = *at;
  if (before < value) *at = value;
  return before;
}
template <class T>
static inline T atomicMin(T* at, T value) {
  const T before = *at;
  if (value < before) *at = value;
  return before;
}
template <class T>
static inline T atomicExch(T* at, T value) {
  const T before = *at;
  *at = value;
  return before;
}
template <class T>
static inline T atomicCAS(T* at, T expected, T value) {
  const T before = *at;
  if (before == expected) *at = value;
  return before;
}
template <class T>
static inline T atomicOr(T* at, T value) {
  const T before = *at;
  *at = static_cast<T>(before | value);
  return before;
}

// ---- vectors
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

#endif
