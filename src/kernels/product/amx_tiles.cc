#include "kernels/product/amx_tiles.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>

#define HYBRIDNET_AMX __attribute__((noinline, target("amx-tile,amx-int8")))
#endif

namespace hybridnet::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kSide = 16;                     // rows and columns of the sums of a tile
constexpr int64_t kStep = kAmxQuads * kByteQuad;  // bytes of a row of a tile
static_assert(kSide == kAmxRows && kSide == kByteUnit);

// All tiles are full: a block with a rest of rows or columns computes some of the others twice.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {kStep, kStep, kStep, kStep, kStep, kStep, kStep, kStep};
  uint8_t rows[16] = {kSide, kSide, kSide, kSide, kSide, kSide, kSide, kSide};
};
static_assert(sizeof(TileShapes) == 64);

// Prefetches weights of the next block, `pitch` bytes apart for each quad: each pass over the rows of a block fetches a
// share of them, so that they arrive at the rate at which the block is multiplied.
class NextWeights {
 public:
  NextWeights(const int8_t* weights, int64_t pass, int64_t passes, int64_t pitch)
      : share_(weights ? (kAmxQuads + passes - 1) / passes : 0), pitch_(pitch), at_(weights + pass * share_ * pitch) {}
  void fetch_step() {
    for (int64_t i = 0; i < share_; ++i) {
      __builtin_prefetch(at_ + i * pitch_, 0, 2);  // to the second-level cache
      __builtin_prefetch(at_ + i * pitch_ + kStep, 0, 2);
    }
    at_ += kAmxQuads * pitch_;
  }

 private:
  int64_t share_, pitch_;
  const int8_t* at_;
};

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights.
template <bool kTwoRows, bool kTwoColumns>
HYBRIDNET_AMX void sum_tiles(const ByteBlock& b, int64_t row, int64_t column) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const char* x = b.rows + row * b.row_bytes;
  const int8_t* w = b.weights + column * kByteQuad;
  const int64_t pitch = b.columns * kByteQuad;
  constexpr int64_t kRows = kTwoRows ? 2 * kSide : kSide;
  const auto passes = [](int64_t rows) { return (rows + kRows - 1) / kRows; };
  NextWeights next(b.ahead ? b.ahead + column * kByteQuad : nullptr, passes(row), passes(b.count), pitch);
  for (int64_t q = 0; q + kAmxQuads <= b.quads; q += kAmxQuads, x += kStep, w += kAmxQuads * pitch) {
    next.fetch_step();
    _tile_loadd(4, x, b.row_bytes);
    _tile_loadd(6, w, pitch);
    _tile_dpbusd(0, 4, 6);
    if constexpr (kTwoColumns) {
      _tile_loadd(7, w + kStep, pitch);
      _tile_dpbusd(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      _tile_loadd(5, x + kSide * b.row_bytes, b.row_bytes);
      _tile_dpbusd(2, 5, 6);
      if constexpr (kTwoColumns) _tile_dpbusd(3, 5, 7);
    }
  }
  constexpr int64_t kStride = kByteTileColumns * sizeof(int32_t);
  int32_t* const sums = b.sums + row * kByteTileColumns + column;
  _tile_stored(0, sums, kStride);
  if constexpr (kTwoColumns) _tile_stored(1, sums + kSide, kStride);
  if constexpr (kTwoRows) _tile_stored(2, sums + kSide * kByteTileColumns, kStride);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, sums + kSide * kByteTileColumns + kSide, kStride);
}

// Calls f(first) for parts of `width` of `count` elements; the last one ends with the last element.
template <class F>
void for_overlapping(int64_t count, int64_t width, const F& f) {
  for (int64_t first = 0; first < count; first += width) f(std::min(first, count - width));
}

template <bool kTwoColumns>
void sum_columns(const ByteBlock& b, int64_t column) {
  if (b.count >= 2 * kSide)
    for_overlapping(b.count, 2 * kSide, [&](int64_t row) { sum_tiles<true, kTwoColumns>(b, row, column); });
  else
    for_overlapping(b.count, kSide, [&](int64_t row) { sum_tiles<false, kTwoColumns>(b, row, column); });
}

// In static memory: GCC 12 takes _tile_loadconfig for a reader of 8 bytes, and leaves other writes to a local one out.
constexpr TileShapes kShapes;

HYBRIDNET_AMX void set_shapes() { _tile_loadconfig(&kShapes); }

// Empty tiles cost other threads less when the system switches to them.
HYBRIDNET_AMX void release_tiles() { _tile_release(); }

}  // namespace

void amx_block(const ByteBlock& b) {
  set_shapes();
  if (b.columns >= 2 * kSide)
    for_overlapping(b.columns, 2 * kSide, [&](int64_t column) { sum_columns<true>(b, column); });
  else
    sum_columns<false>(b, 0);
  release_tiles();
}
#else
void amx_block(const ByteBlock&) {}  // has_amx_bytes() is false
#endif

}  // namespace hybridnet::kernels
