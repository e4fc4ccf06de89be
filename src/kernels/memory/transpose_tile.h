// Transposes of small matrices that fit into the caches. Included once per SIMD target, hence the toggled guard.
#if defined(HYBRIDNET_TRANSPOSE_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_TRANSPOSE_TILE_H_
#undef HYBRIDNET_TRANSPOSE_TILE_H_
#else
#define HYBRIDNET_TRANSPOSE_TILE_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to (columns, rows) = transpose of from (rows, columns), kSide x kSide numbers of 16 bytes at a time.
template <typename T>
void transpose(const T* from, int64_t from_row, int64_t rows, int64_t columns, T* to, int64_t to_row) {
  constexpr int64_t kSide = 16 / sizeof(T);
  const hn::FixedTag<T, kSide> d;
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t r = 0; r < whole_rows; r += kSide) {
    for (int64_t c = 0; c < whole_columns; c += kSide) {
      const T* p = from + r * from_row + c;
      T* q = to + c * to_row + r;
      if constexpr (kSide == 2) {
        const auto x = hn::LoadU(d, p), y = hn::LoadU(d, p + from_row);
        hn::StoreU(hn::InterleaveLower(d, x, y), d, q);
        hn::StoreU(hn::InterleaveUpper(d, x, y), d, q + to_row);
      } else {
        const hn::Repartition<double, decltype(d)> pairs;
        const auto a = hn::LoadU(d, p), b = hn::LoadU(d, p + from_row), e = hn::LoadU(d, p + 2 * from_row),
                   f = hn::LoadU(d, p + 3 * from_row);
        const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
                   ef = hn::BitCast(pairs, hn::InterleaveLower(d, e, f)),
                   upper_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
                   upper_ef = hn::BitCast(pairs, hn::InterleaveUpper(d, e, f));
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ef)), d, q);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ef)), d, q + to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper_ab, upper_ef)), d, q + 2 * to_row);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper_ab, upper_ef)), d, q + 3 * to_row);
      }
    }
    for (int64_t c = whole_columns; c < columns; ++c)
      for (int64_t i = r; i < r + kSide; ++i) to[c * to_row + i] = from[i * from_row + c];
  }
  for (int64_t r = whole_rows; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
