#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/image_resize.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hybridnet/kernel.h"
#include "kernels/elementwise/integers.h"
#include "kernels/image/image_resize.h"
#include "storage/temporary.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <typename T>
using sum_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T, typename A>
HWY_INLINE T from_sum(A value) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
    constexpr float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return static_cast<T>(static_cast<int32_t>(std::rint(std::min(std::max(value, low), high))));
  } else if constexpr (std::is_integral_v<T>) {
    return to_integer<T>(std::nearbyint(static_cast<double>(value)));
  } else {
    return static_cast<T>(value);
  }
}

// sum + a * b, rounded once where the instruction set can: by a function, because the compiler would merge the two
// operations in some of the loops only, and GPUs (kernels/device/image.cuh) would give other bits.
template <typename A>
HWY_INLINE A add_product(A sum, A a, A b) {
#if HWY_NATIVE_FMA
  return std::fma(a, b, sum);
#else
  return sum + a * b;
#endif
}

// Computes in `line` the weighted sum of old rows for new row `row`.
template <typename T>
HWY_INLINE void sum_rows(const ImageResizing& r, const T* in, int64_t row, sum_t<T>* HWY_RESTRICT line) {
  using A = sum_t<T>;
  const int64_t size = r.from.width * r.from.channels;
  const int64_t* index = r.rows.index.data() + row * r.rows.count;
  const double* weight = r.rows.weight.data() + row * r.rows.count;
  const auto source = [&](int64_t k) { return in + index[k] * size; };
  const A first = static_cast<A>(weight[0]);
  if (const T* a = source(0); r.rows.count == 1) {
    for (int64_t j = 0; j < size; ++j) line[j] = first * static_cast<A>(a[j]);
  } else {
    const A second = static_cast<A>(weight[1]);
    const T* b = source(1);
    for (int64_t j = 0; j < size; ++j)
      line[j] = add_product(second * static_cast<A>(b[j]), first, static_cast<A>(a[j]));
  }
  for (int64_t k = 2; k < r.rows.count; ++k) {
    const A factor = static_cast<A>(weight[k]);
    if (factor == 0) continue;
    const T* a = source(k);
    for (int64_t j = 0; j < size; ++j) line[j] = add_product(line[j], factor, static_cast<A>(a[j]));
  }
}

// kChannels and kCount are the number of channels and taps if these are compile-time constants, or else 0.
template <int kChannels, int kCount, typename A>
HWY_INLINE void sum_columns(const ImageResizing& r, const A* HWY_RESTRICT weight, const A* HWY_RESTRICT line,
                            A* HWY_RESTRICT out) {
  const int64_t channels = kChannels > 0 ? kChannels : r.from.channels;
  const int64_t count = kCount > 0 ? kCount : r.columns.count;
  const int64_t* index = r.columns.index.data();
  for (int64_t x = 0; x < r.to.width; ++x, index += count, weight += count) {
    for (int64_t c = 0; c < channels; ++c) {
      A sum = 0;
      for (int64_t k = 0; k < count; ++k) sum = add_product(sum, weight[k], line[index[k] * channels + c]);
      out[x * channels + c] = sum;
    }
  }
}

template <typename A>
void sum_columns(const ImageResizing& r, const A* weight, const A* line, A* out) {
  const int64_t channels = r.from.channels, count = r.columns.count;
  if (channels == 3 && count == 2) return sum_columns<3, 2>(r, weight, line, out);
  if (channels == 3 && count == 4) return sum_columns<3, 4>(r, weight, line, out);
  if (channels == 3) return sum_columns<3, 0>(r, weight, line, out);
  if (channels == 1 && count == 2) return sum_columns<1, 2>(r, weight, line, out);
  sum_columns<0, 0>(r, weight, line, out);
}

template <typename T>
void resize_rows(const ImageResizing& r, const void* from, void* to, int64_t begin, int64_t end) {
  using A = sum_t<T>;
  const T* in = static_cast<const T*>(from);
  const int64_t old_size = r.from.width * r.from.channels, size = r.to.width * r.to.channels;
  Temporary<A> line(static_cast<size_t>(old_size)), sums(static_cast<size_t>(size));
  const Temporary<A> weight(r.columns.weight.begin(), r.columns.weight.end());
  for (int64_t row = begin; row < end; ++row) {
    sum_rows(r, in, row, line.data());
    sum_columns(r, weight.data(), line.data(), sums.data());
    T* out = static_cast<T*>(to) + row * size;
    for (int64_t j = 0; j < size; ++j) out[j] = from_sum<T>(sums[static_cast<size_t>(j)]);
  }
}

void resize(const ImageResizing& r, DType dtype, const void* in, void* out, int64_t begin, int64_t end) {
  dispatch_dtype(dtype, [&](auto zero) { resize_rows<decltype(zero)>(r, in, out, begin, end); });
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {

HWY_EXPORT(resize);

void take_nearest(const ImageResizing& r, int64_t pixel_bytes, const char* in, char* out, int64_t begin, int64_t end) {
  for (int64_t y = begin; y < end; ++y) {
    const char* row = in + r.rows.index[static_cast<size_t>(y)] * r.from.width * pixel_bytes;
    char* to = out + y * r.to.width * pixel_bytes;
    for (int64_t index : r.columns.index) {
      if (pixel_bytes == 3) {  // a copy of a constant size needs no call
        std::memcpy(to, row + index * 3, 3);
      } else {
        std::memcpy(to, row + index * pixel_bytes, static_cast<size_t>(pixel_bytes));
      }
      to += pixel_bytes;
    }
  }
}

}  // namespace

ImageResizing::ImageResizing(const ImageShape& shape, int64_t height, int64_t width, Interpolation method)
    : from(shape),
      to{height, width, shape.channels},
      rows(image_taps(shape.height, height, method)),
      columns(image_taps(shape.width, width, method)) {}

void ImageResizing::run(DType dtype, const void* in, void* out, int64_t begin, int64_t end) const {
  if (rows.count == 1 && columns.count == 1) {
    take_nearest(*this, from.channels * dtype_size(dtype), static_cast<const char*>(in), static_cast<char*>(out), begin,
                 end);
  } else {
    HWY_DYNAMIC_DISPATCH(resize)(*this, dtype, in, out, begin, end);
  }
}

}  // namespace hybridnet::kernels

namespace hybridnet {

void resize_image(const void* from, DType dtype, const ImageShape& shape, int64_t height, int64_t width,
                  Interpolation method, void* to) {
  kernels::ImageResizing(shape, height, width, method).run(dtype, from, to, 0, height);
}

}  // namespace hybridnet
#endif
