// Products and transposes of small matrices in tiles, for fused attention. Included once per SIMD target, hence the
// toggled guard.
#if defined(HYBRIDNET_ATTENTION_MATRICES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_ATTENTION_MATRICES_H_
#undef HYBRIDNET_ATTENTION_MATRICES_H_
#else
#define HYBRIDNET_ATTENTION_MATRICES_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/memory/transpose_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

enum class Into { kSet, kAdd, kScaled };  // c = a b; c += a b; c = c * factor + a b, with one factor per column

// The rows of c that are computed together, and the vectors of each row: as many as fit into the registers.
constexpr int kRowsAtOnce = 6;
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int kVectorsAtOnce = 2;
#else
constexpr int kVectorsAtOnce = 4;
#endif

// Element (i, l) of the left operand is a[i * row + l * step].
template <typename T>
struct Left {
  const T* a;
  int64_t row, step;
};

// Calls f(0) to f(kCount - 1) with compile-time constants: arrays indexed by them stay in registers.
template <int kCount, typename F>
HWY_INLINE void unrolled(F&& f) {
  if constexpr (kCount > 0) {
    unrolled<kCount - 1>(f);
    f(std::integral_constant<int, kCount - 1>());
  }
}

template <Into kInto, int kM, int kV, typename T>
HWY_NOINLINE void block(Left<T> left, int64_t depth, const T* b, int64_t b_row, T* c, int64_t c_row, const T* factor) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kM][kV], right[kV];
  const auto each = [](auto&& f) HWY_ATTR {
    unrolled<kM>([&](auto i) HWY_ATTR { unrolled<kV>([&](auto j) HWY_ATTR { f(i, j); }); });
  };
  each([&](auto i, auto j) HWY_ATTR {
    if constexpr (kInto == Into::kSet) {
      sum[i][j] = hn::Zero(d);
    } else {
      sum[i][j] = hn::LoadU(d, c + i * c_row + j * lanes);
      if constexpr (kInto == Into::kScaled) sum[i][j] = hn::Mul(sum[i][j], hn::LoadU(d, factor + j * lanes));
    }
  });
  for (int64_t l = 0; l < depth; ++l) {
    unrolled<kV>([&](auto j) HWY_ATTR { right[j] = hn::LoadU(d, b + l * b_row + j * lanes); });
    unrolled<kM>([&](auto i) HWY_ATTR {
      const auto x = hn::Set(d, left.a[i * left.row + l * left.step]);
      unrolled<kV>([&](auto j) HWY_ATTR { sum[i][j] = hn::MulAdd(x, right[j], sum[i][j]); });
    });
  }
  each([&](auto i, auto j) HWY_ATTR { hn::StoreU(sum[i][j], d, c + i * c_row + j * lanes); });
}

template <Into kInto, int kM, typename T>
HWY_INLINE void block_row(int64_t width, Left<T> left, int64_t depth, const T* b, int64_t b_row, T* c, int64_t c_row,
                          const T* factor) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  int64_t j = 0;
  const auto columns = [&]<int kV>() HWY_ATTR {
    for (; j + kV * lanes <= width; j += kV * lanes)
      block<kInto, kM, kV>(left, depth, b + j, b_row, c + j, c_row, factor ? factor + j : nullptr);
  };
  if constexpr (kVectorsAtOnce == 4) columns.template operator()<4>();
  columns.template operator()<2>();
  columns.template operator()<1>();
}

// Computes c (m, width) from left (m, depth) and b (depth, width); width is a multiple of the vector length.
template <Into kInto, typename T>
void product(int64_t m, int64_t width, int64_t depth, Left<T> left, const T* b, int64_t b_row, T* c, int64_t c_row,
             const T* factor = nullptr) {
  int64_t i = 0;
  const auto rows = [&]<int kM>() HWY_ATTR {
    for (; i + kM <= m; i += kM) {
      block_row<kInto, kM>(width, {left.a + i * left.row, left.row, left.step}, depth, b, b_row, c + i * c_row, c_row,
                           factor);
    }
  };
  rows.template operator()<kRowsAtOnce>();
  rows.template operator()<4>();
  rows.template operator()<2>();
  rows.template operator()<1>();
}

template <typename T>
int64_t whole_vectors(int64_t n) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
  return (n + lanes - 1) / lanes * lanes;
}

// to (columns, width) = factor * transpose of from (count, columns); columns of `to` from `count` on are 0.
template <typename T>
void scaled_transpose(const T* from, int64_t from_row, int64_t count, int64_t columns, T factor, T* to, int64_t width) {
  transpose(from, from_row, count, columns, to, width);
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < count; ++r) to[c * width + r] *= factor;
    std::fill(to + c * width + count, to + (c + 1) * width, T(0));
  }
}

// to (count, width) = factor * from (count, columns); columns of `to` from `columns` on are 0.
template <typename T>
void widened(const T* from, int64_t from_row, int64_t count, int64_t columns, T factor, T* to, int64_t width) {
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[r * width + c] = from[r * from_row + c] * factor;
    std::fill(to + r * width + columns, to + (r + 1) * width, T(0));
  }
}

// Returns the rows with no gap between them: `from` itself, or else a copy in `to`. Rows a power of two apart share few
// cache sets, too few for reading them once per column.
template <typename T>
const T* close_rows(const T* from, int64_t from_row, int64_t rows, int64_t columns, T* to) {
  if (from_row == columns) return from;
  for (int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_row, columns, to + r * columns);
  return to;
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
