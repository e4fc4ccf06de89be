// All pairs of dtypes; float16 uses the machine's conversion instructions if it has them.
#include "kernels/elementwise/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/convert.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/memory/device_copy.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Round to nearest even without branches, so that the compiler vectorizes it.
HWY_INLINE uint16_t bfloat16_bits(float value) {
  const uint32_t x = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (x + 0x7fffu + (x >> 16 & 1u)) >> 16;
  const uint32_t nan = (x >> 16) | 0x40u;
  return static_cast<uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

template <class To, class From>
HWY_INLINE To convert_one(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    // int64 saturates, narrower integers wrap around; 2^63 is exact as a float, the largest int64 is not.
    constexpr From low = static_cast<From>(std::numeric_limits<int64_t>::min());
    if (x != x) return 0;
    if (x <= low) return static_cast<To>(std::numeric_limits<int64_t>::min());
    if (x >= -low) return static_cast<To>(std::numeric_limits<int64_t>::max());
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

// If int32 holds all numbers of a tile, which is the common case, they are converted through int32 in vectors.
template <class To, class From>
void narrow_integers(const From* in, To* out, int64_t n) {
  constexpr int64_t kTile = 512;
  constexpr From low = static_cast<From>(std::numeric_limits<int32_t>::min());
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t m = n - i < kTile ? n - i : kTile;
    int outside = 0;
    for (int64_t k = i; k < i + m; ++k) outside |= !(in[k] >= low) | !(in[k] < -low);
    if (outside) {
      for (int64_t k = i; k < i + m; ++k) out[k] = convert_one<To>(in[k]);
    } else {
#pragma GCC ivdep
      for (int64_t k = i; k < i + m; ++k) out[k] = static_cast<To>(static_cast<int32_t>(in[k]));
    }
  }
}

void half_to_float(const float16* in, float* out, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* halves = reinterpret_cast<const hwy::float16_t*>(in);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, halves + i)), d, out + i);
#endif
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

void float_to_half(const float* in, float16* out, int64_t n) {
  int64_t i = 0;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> dh;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto* halves = reinterpret_cast<hwy::float16_t*>(out);
  for (; i + lanes <= n; i += lanes) hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, in + i)), dh, halves + i);
#endif
  for (; i < n; ++i) out[i] = float16(in[i]);
}

template <class From, class To>
void convert_span(const void* in_memory, void* out_memory, int64_t n) {
  const From* in = static_cast<const From*>(in_memory);
  To* out = static_cast<To*>(out_memory);
  if constexpr (std::is_same_v<From, To>) {
    if (n > 0 && in != static_cast<const void*>(out)) std::memcpy(out, in, static_cast<size_t>(n) * sizeof(To));
  } else if constexpr (std::is_same_v<From, float16> && std::is_same_v<To, float>) {
    half_to_float(in, out, n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, float16>) {
    float_to_half(in, out, n);
  } else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i].bits = bfloat16_bits(in[i]);
  } else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(static_cast<uint32_t>(in[i].bits) << 16);
  } else if constexpr (kIsHalf<From> || kIsHalf<To>) {
    // Through float32: exact on the way in; on the way out float64 and integers round twice, which differs only below
    // the resolution of half precision. MXNet does the same.
    constexpr int64_t kTile = 512;
    float tile[kTile];
    for (int64_t i = 0; i < n; i += kTile) {
      const int64_t m = n - i < kTile ? n - i : kTile;
      convert_span<From, float>(in + i, tile, m);
      convert_span<float, To>(tile, out + i, m);
    }
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool> &&
                       sizeof(To) < sizeof(int64_t)) {
    narrow_integers(in, out, n);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = convert_one<To>(in[i]);
  }
}
template <class From>
void fill_row(ConvertFn* row) {
  const auto set = [row]<class To>(To) { row[static_cast<int>(dtype_of<To>::value)] = &convert_span<From, To>; };
  set(float{}), set(double{}), set(float16{}), set(bfloat16{}), set(int8_t{}), set(uint8_t{}), set(int32_t{}),
      set(int64_t{}), set(bool{});
}

using ConvertTable = std::array<std::array<ConvertFn, kDTypeCodes>, kDTypeCodes>;
void fill_convert(ConvertTable& table) {
  const auto row = [&table]<class From>(From) {
    fill_row<From>(table[static_cast<int>(dtype_of<From>::value)].data());
  };
  row(float{}), row(double{}), row(float16{}), row(bfloat16{}), row(int8_t{}), row(uint8_t{}), row(int32_t{}),
      row(int64_t{}), row(bool{});
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(fill_convert);

ConvertFn convert_fn(DType from, DType to) {
  using ConvertTable = std::array<std::array<ConvertFn, kDTypeCodes>, kDTypeCodes>;
  static const ConvertTable table = [] {
    ConvertTable t{};
    HWY_DYNAMIC_DISPATCH(fill_convert)(t);
    return t;
  }();
  return table[static_cast<int>(from)][static_cast<int>(to)];
}

void convert(DType from, const void* in, DType to, void* out, int64_t n) {
  if (device::current()) return on_device::convert(from, in, to, out, n);
  convert_fn(from, to)(in, out, n);
}

void convert_parallel(DType from, const void* in, DType to, void* out, int64_t n) {
  if (device::current()) return on_device::convert(from, in, to, out, n);
  const ConvertFn fn = convert_fn(from, to);
  const int64_t in_size = dtype_size(from), out_size = dtype_size(to);
  parallel_for(n, 0.25, [&](int64_t begin, int64_t end) {
    fn(static_cast<const char*>(in) + begin * in_size, static_cast<char*>(out) + begin * out_size, end - begin);
  });
}

}  // namespace hybridnet::kernels
#endif
