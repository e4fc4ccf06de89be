// Tiles of a product of rows with packed weights: the sums for a few rows and a few vectors of columns stay in
// registers. Included once per SIMD target, hence the toggled guard.
#if defined(HYBRIDNET_PRODUCT_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_PRODUCT_TILE_H_
#undef HYBRIDNET_PRODUCT_TILE_H_
#else
#define HYBRIDNET_PRODUCT_TILE_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "kernels/memory/vector_rows.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The number of rows of a tile with this many vectors of columns. AVX2 has 16 registers: 12 hold sums, the others the
// factors. Six rows of two vectors are the fastest: they read the weights from the cache half as often as three rows of
// four.
constexpr int tile_rows(int vectors) {
  if (HWY_TARGET <= HWY_AVX3) return 6;
  if (HWY_TARGET == HWY_AVX2) return vectors >= 4 ? 3 : vectors == 3 ? 4 : 6;
  return 2;
}

// Clips v to [low, high]. NaN stays; a zero that equals a bound becomes this bound, like in clip and relu.
template <class V>
HWY_INLINE V bounded(V v, V low, V high) {
  const V raised = hn::IfThenElse(hn::Le(v, low), low, v);
  return hn::IfThenElse(hn::Ge(raised, high), high, raised);
}

// sums += elements [begin, end) of rows (kRows, depth), `stride` apart, times a block of packed weights: kVectors
// vectors for each element of a row, `pitch` apart. If kPart is less than kVectors, the block consists of consecutive
// parts of kPart vectors, each for the full depth.
template <int kRows, int kVectors, int kPart, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_products_of(D d, const T* block, int64_t depth, int64_t pitch, const T* rows, int64_t stride,
                                int64_t begin, int64_t end, hn::Vec<D> (&sums)[kRows][kVectors]) {
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto weight = [&](int v)
                          HWY_ATTR { return hn::LoadU(d, block + (v / kPart * kPart * depth + v % kPart) * lanes); };
  block += begin * pitch;
  int64_t k = begin;
  if constexpr (kRows == 1) {
    // With so few sums, each addition would wait for the one before: every other element has separate sums.
    V others[kVectors];
    for (int v = 0; v < kVectors; ++v) others[v] = hn::Zero(d);
    for (; k + 2 <= end; k += 2, block += pitch) {
      const V x = hn::Set(d, rows[k]), other = hn::Set(d, rows[k + 1]);
      for (int v = 0; v < kVectors; ++v) sums[0][v] = hn::MulAdd(x, weight(v), sums[0][v]);
      block += pitch;
      for (int v = 0; v < kVectors; ++v) others[v] = hn::MulAdd(other, weight(v), others[v]);
    }
    for (int v = 0; v < kVectors; ++v) sums[0][v] = hn::Add(sums[0][v], others[v]);
  }
  for (; k < end; ++k, block += pitch) {
    // Keeps the smaller set of factors in registers.
    if constexpr (kRows <= kVectors) {
      V x[kRows];
      for (int r = 0; r < kRows; ++r) x[r] = hn::Set(d, rows[r * stride + k]);
      for (int v = 0; v < kVectors; ++v) {
        const V w = weight(v);
        for (int r = 0; r < kRows; ++r) sums[r][v] = hn::MulAdd(x[r], w, sums[r][v]);
      }
    } else {
      V weights[kVectors];
      for (int v = 0; v < kVectors; ++v) weights[v] = weight(v);
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, rows[r * stride + k]);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, weights[v], sums[r][v]);
      }
    }
  }
}

// The same for weights without gaps.
template <int kRows, int kVectors, int kPart = kVectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_products(D d, const T* block, int64_t depth, const T* rows, int64_t stride, int64_t begin,
                             int64_t end, hn::Vec<D> (&sums)[kRows][kVectors]) {
  add_products_of<kRows, kVectors, kPart>(d, block, depth, kPart * static_cast<int64_t>(hn::Lanes(d)), rows, stride,
                                          begin, end, sums);
}

// The same for `columns` columns, which need not fill the vectors and are the last ones of the block: vectors extend
// into the columns of the next elements of the depth, and vectors that would extend beyond the end are loaded in part.
// The lanes after the columns are undefined.
template <int kRows, int kVectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_last_products(D d, const T* block, int64_t columns, int64_t depth, const T* rows, int64_t stride,
                                  int64_t begin, int64_t end, hn::Vec<D> (&sums)[kRows][kVectors]) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), reached = (kVectors * lanes + columns - 1) / columns;
  const int64_t whole = std::clamp(depth + 1 - reached, begin, end);
  add_products_of<kRows, kVectors, kVectors>(d, block, depth, columns, rows, stride, begin, whole, sums);
  for (int64_t k = whole; k < end; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      const auto w = load_part(d, block + k * columns + v * lanes, std::min(lanes, columns - v * lanes), T(0));
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::MulAdd(hn::Set(d, rows[r * stride + k]), w, sums[r][v]);
    }
  }
}

// Weights in memory are prefetched while the tiles before them are computed. The tiles that read one part prefetch the
// next part, each a share of it, a few lines at every few elements of the depth: more at once would wait for each
// other. Measured on an AMD EPYC with AVX2: 49 rows of 1024 by 1024 run at 95 % of a core's peak instead of 82 %, 196
// rows of 512 by 512 at 95 % instead of 92 %. Weights that stay in the second-level cache gain nothing.
constexpr int64_t kFetchStep = 16;
constexpr int64_t kLine = 64;

// A few rows take less time than reading the weights from memory, if both overlap: with AVX-512 the tiles go through
// the depth in short passes, whose weights stay in the first caches for all tiles, and fetch those of the next pass
// into the second-level cache, a line at a time. GB/s of two cores of a Xeon, 3072 by 768, without and with this:
// weights from memory, 4 rows 25 and 26, 8 rows 22 and 26, 16 rows 14 and 20; from the cache that all cores share 28
// and 48, 23 and 43, 15 and 25. With AVX2 nothing is gained: 8 rows 19 and 17.
constexpr int64_t kStreamDepth = 128, kStreamStep = 1;

// With few rows, prefetches delay the reads of the current weights. Time without them: with AVX-512 0.75 for one row of
// 1024 by 1024, 0.6 for four, 0.93 for 16, 0.98 for recurrent steps of 32 rows, but 1.12 for 64 rows of 4096 by 4096;
// with AVX2 0.67 for one row, 0.88 for two of 768 by 768, 0.95 for four, but 1.37 for 8 rows of 2048 by 1000.
template <typename T>
bool fetching_pays(int64_t weights, int64_t rows) {
  constexpr int64_t kStaysNear = 192 << 10, kFewRows = HWY_TARGET <= HWY_AVX3 ? 32 : 4;
  return rows > kFewRows && weights * static_cast<int64_t>(sizeof(T)) > kStaysNear;
}

// The same for weights that are fetched in short passes. Time with them: 2 rows of 512 by 784 or 1024 by 1024, which
// stay in the second-level caches, 1.3 and 1.15; 2 and 32 rows of 3072 by 768 0.84 and 0.69.
template <typename T>
bool streaming_pays(int64_t weights, int64_t rows) {
  constexpr int64_t kStaysNear = 4 << 20, kLeastRows = 2, kMostRows = 32;
  return HWY_TARGET <= HWY_AVX3 && rows >= kLeastRows && rows <= kMostRows &&
         weights * static_cast<int64_t>(sizeof(T)) > kStaysNear;
}

// The memory that one tile prefetches.
struct Fetch {
  const char* from = nullptr;
  int64_t lines = 0;  // at each step
  bool near = true;   // into the first-level cache, else into the second
};

// The share of `size` elements that the tile of `rows` of `count` rows prefetches while it processes this depth.
template <typename T>
Fetch share_of(const T* next, int64_t size, int64_t depth, int64_t row, int64_t rows, int64_t count, bool near = true) {
  const int64_t steps = depth / (near ? kFetchStep : kStreamStep);
  if (steps == 0) return {};
  const int64_t bytes = size * static_cast<int64_t>(sizeof(T)), begin = bytes * row / count / kLine * kLine;
  const int64_t lines = (bytes * (row + rows) / count - begin + kLine - 1) / kLine;
  return {reinterpret_cast<const char*>(next) + begin, (lines + steps - 1) / steps, near};
}

// The same as add_products() without prefetching.
template <int kRows, int kVectors, int kPart, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_products(D d, const T* block, int64_t depth, const T* rows, int64_t stride, int64_t begin,
                             int64_t end, Fetch fetch, hn::Vec<D> (&sums)[kRows][kVectors]) {
  // Constant steps: the compiler unrolls them.
  const auto fetch_along = [&](auto step, auto locality) HWY_ATTR {
    constexpr int64_t kStep = decltype(step)::value;
    for (; begin + kStep <= end; begin += kStep) {
      for (int64_t i = 0; i < fetch.lines; ++i, fetch.from += kLine)
        __builtin_prefetch(fetch.from, 0, decltype(locality)::value);
      add_products<kRows, kVectors, kPart>(d, block, depth, rows, stride, begin, begin + kStep, sums);
    }
  };
  if (fetch.lines > 0 && fetch.near)
    fetch_along(std::integral_constant<int64_t, kFetchStep>{}, std::integral_constant<int, 3>{});
  else if (fetch.lines > 0)
    fetch_along(std::integral_constant<int64_t, kStreamStep>{}, std::integral_constant<int, 2>{});
  add_products<kRows, kVectors, kPart>(d, block, depth, rows, stride, begin, end, sums);
}

// Calls f(d, j, width) for blocks of columns [begin, end): vectors of at most kLanes lanes, then of half the length
// each, as long as columns remain. begin is a multiple of the longest vector length.
template <typename T, size_t kLanes, class F>
HWY_INLINE void for_blocks(int64_t begin, int64_t end, const F& f) {
  const hn::CappedTag<T, kLanes> d;
  const int64_t width = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = begin;
  for (; j + width <= end; j += width) f(d, j, width);
  if constexpr (kLanes > 1) {
    if (j < end) for_blocks<T, kLanes / 2>(j, end, f);
  }
}

template <typename T>
constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(T);

// Calls f(d, constant, j) for blocks of columns [begin, end): kVectors whole vectors (`constant` is their number) as
// long as enough columns remain, then single vectors of decreasing length.
template <typename T, int kVectors, class F>
HWY_INLINE void for_wide_blocks(int64_t begin, int64_t end, const F& f) {
  const hn::ScalableTag<T> longest;
  const int64_t wide = kVectors * static_cast<int64_t>(hn::Lanes(longest));
  int64_t j = begin;
  for (; j + wide <= end; j += wide) f(longest, std::integral_constant<int, kVectors>{}, j);
  for_blocks<T, kMaxLanes<T>>(
      j, end, [&](auto d, int64_t at, int64_t) HWY_ATTR { f(d, std::integral_constant<int, 1>{}, at); });
}

// Calls f(first row, constant) for tiles that cover the rows; the constant is their number of rows, at most kRows. With
// six rows per tile, all numbers of rows but one, two, three and seven are covered by tiles of four and more.
template <int kRows, class F>
HWY_INLINE void for_tiles(int64_t rows, const F& f) {
  int64_t row = 0;
  const auto take = [&](auto count) HWY_ATTR {
    f(row, count);
    row += count();
  };
  if constexpr (kRows == 6) {
    while (rows - row == 6 || (rows - row >= 10 && rows - row != 13)) take(std::integral_constant<int, 6>{});
    if (rows - row > 4 && (rows - row) % 4 == 1) take(std::integral_constant<int, 5>{});
    while (rows - row >= 4) take(std::integral_constant<int, 4>{});
  } else {
    while (rows - row >= kRows) take(std::integral_constant<int, kRows>{});
  }
  if constexpr (kRows > 3) {
    if (rows - row == 3) take(std::integral_constant<int, 3>{});
  }
  if constexpr (kRows > 2) {
    if (rows - row >= 2) take(std::integral_constant<int, 2>{});
  }
  while (row < rows) take(std::integral_constant<int, 1>{});
}

// The number of vectors of columns, out of kVectors, in a tile and in a part of a packed block.
constexpr int part_of(int vectors) { return HWY_TARGET == HWY_AVX2 && vectors == 4 ? 2 : vectors; }

// Calls f(first row, rows, first vector, vectors) for tiles that cover the rows and kVectors vectors; rows and vectors
// are constants. Tiles of three or fewer rows process all parts at once: one part would have too few sums to hide the
// latency of their additions.
template <int kVectors, class F>
HWY_INLINE void for_part_tiles(int64_t rows, const F& f) {
  constexpr int kPart = part_of(kVectors);
  for (int first = 0; first < kVectors; first += kPart) {
    for_tiles<tile_rows(kPart)>(rows, [&](int64_t row, auto count) HWY_ATTR {
      if constexpr (decltype(count)::value > 3 || kPart == kVectors) {
        f(row, count, first, std::integral_constant<int, kPart>{});
      } else if (first == 0) {
        f(row, count, first, std::integral_constant<int, kVectors>{});
      }
    });
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
