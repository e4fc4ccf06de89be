#include "kernels/product/amx_tiles.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <immintrin.h>

#define HYBRIDNET_AMX __attribute__((noinline, target("amx-tile,amx-int8")))
#endif

namespace hybridnet::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kSide = 16;                     // rows and columns of the sums of a tile
constexpr int64_t kStep = kAmxQuads * kByteQuad;  // bytes of a row of a tile
static_assert(kSide == kByteUnit);

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

// Tiles 0 to 3 are sums, 4 and 5 rows, 6 and 7 weights. The last tile of a block of more than kSide rows ends with the
// last row: it computes some of the sums of the tile in front of it again.
template <bool kTwoRows, bool kTwoColumns>
HYBRIDNET_AMX void sum_tiles(const ByteBlock& b, int64_t row, int64_t column) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const char* x = b.rows + row * b.row_bytes;
  const int8_t* w = b.weights + column * kByteQuad;
  const int64_t pitch = b.columns * kByteQuad;
  const int64_t second = std::min(kSide, b.count - kSide - row);  // the row of tile 5, behind `row`
  const auto passes = [](int64_t rows) { return (rows + 2 * kSide - 1) / (2 * kSide); };
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
      _tile_loadd(5, x + second * b.row_bytes, b.row_bytes);
      _tile_dpbusd(2, 5, 6);
      if constexpr (kTwoColumns) _tile_dpbusd(3, 5, 7);
    }
  }
  constexpr int64_t kStride = kByteTileColumns * sizeof(int32_t);
  int32_t* const sums = b.sums + row * kByteTileColumns + column;
  _tile_stored(0, sums, kStride);
  if constexpr (kTwoColumns) _tile_stored(1, sums + kSide, kStride);
  if constexpr (kTwoRows) _tile_stored(2, sums + second * kByteTileColumns, kStride);
  if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, sums + second * kByteTileColumns + kSide, kStride);
}

template <bool kTwoColumns>
void sum_columns(const ByteBlock& b, int64_t column) {
  for (int64_t row = 0; row < b.count; row += 2 * kSide) {
    if (b.count - row > kSide)
      sum_tiles<true, kTwoColumns>(b, row, column);
    else
      sum_tiles<false, kTwoColumns>(b, std::max<int64_t>(0, b.count - kSide), column);
  }
}

// For 1 to kSide rows. In static memory: GCC 12 takes _tile_loadconfig for a reader of 8 bytes, and leaves out other
// writes to a local variable.
constexpr std::array<TileShapes, kSide> kShapes = [] {
  std::array<TileShapes, kSide> shapes;
  for (int64_t i = 0; i < kSide; ++i)
    for (const int tile : {0, 1, 2, 3, 4, 5}) shapes[i].rows[tile] = static_cast<uint8_t>(i + 1);
  return shapes;
}();

HYBRIDNET_AMX void set_shapes(int64_t rows) {
  _tile_loadconfig(&kShapes[static_cast<size_t>(std::min(rows, kSide) - 1)]);
}

// Empty tiles cost other threads less when the system switches to them.
HYBRIDNET_AMX void release_tiles() { _tile_release(); }

}  // namespace

void amx_block(const ByteBlock& b) {
  set_shapes(b.count);
  int64_t column = 0;
  for (; column + 2 * kSide <= b.columns; column += 2 * kSide) sum_columns<true>(b, column);
  if (column < b.columns) sum_columns<false>(b, column);
  release_tiles();
}
#else
void amx_block(const ByteBlock&) {}  // has_amx_bytes() is false
#endif

}  // namespace hybridnet::kernels
