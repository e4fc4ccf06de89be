#include "kernels/reduce/cumsum.h"

#include <algorithm>
#include <type_traits>

#include "device/stream.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/pointwise.h"
#include "kernels/reduce/device_reduce.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kWidth = 512;
constexpr int64_t kTile = 512;

struct Sums {
  ConvertFn widen, narrow;
  const char* in;
  char* out;
  int64_t in_size, out_size, length, inner;
  bool from_end;

  int64_t row(int64_t i) const { return from_end ? length - 1 - i : i; }

  // Sums one sequence after the other, in tiles.
  template <class A>
  void run(int64_t o) const {
    A tile[kTile];
    A sum = 0;
    for (int64_t i = 0; i < length; i += kTile) {
      const int64_t n = std::min(kTile, length - i), first = o * length + (from_end ? length - i - n : i);
      widen(in + first * in_size, tile, n);
      if (from_end) {
        for (int64_t j = n - 1; j >= 0; --j) tile[j] = sum += tile[j];
      } else {
        for (int64_t j = 0; j < n; ++j) tile[j] = sum += tile[j];
      }
      narrow(tile, out + first * out_size, n);
    }
  }

  // Sums columns [k, k + width) side by side.
  template <class A>
  void run_columns(int64_t o, int64_t k, int64_t width) const {
    A sums[kWidth], values[kWidth];
    std::fill_n(sums, width, A(0));
    for (int64_t i = 0; i < length; ++i) {
      const int64_t at = (o * length + row(i)) * inner + k;
      widen(in + at * in_size, values, width);
      for (int64_t j = 0; j < width; ++j) sums[j] += values[j];
      narrow(sums, out + at * out_size, width);
    }
  }
};

}  // namespace

void cumsum(DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner, bool from_end, DType out_dtype,
            void* out) {
  if (outer * length * inner == 0) return;
  if (device::current()) return on_device::cumsum(dtype, in, outer, length, inner, from_end, out_dtype, out);
  // Unsigned: integer sums wrap around.
  const bool floating = is_floating(dtype) || is_floating(out_dtype);
  const DType wide = floating ? DType::kFloat64 : DType::kInt64;
  const Sums sums{convert_fn(dtype, wide),
                  convert_fn(wide, out_dtype),
                  static_cast<const char*>(in),
                  static_cast<char*>(out),
                  dtype_size(dtype),
                  dtype_size(out_dtype),
                  length,
                  inner,
                  from_end};
  const int64_t tiles = (inner + kWidth - 1) / kWidth;
  const double tile_ns = 1.5 * static_cast<double>(length * std::min(inner, kWidth));
  parallel_for(outer * tiles, tile_ns, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t o = u / tiles, k = u % tiles * kWidth, width = std::min(kWidth, inner - k);
      if (inner == 1) {
        floating ? sums.run<double>(o) : sums.run<uint64_t>(o);
      } else {
        floating ? sums.run_columns<double>(o, k, width) : sums.run_columns<uint64_t>(o, k, width);
      }
    }
  });
}

}  // namespace hybridnet::kernels
