#include "kernels/product/amx_bytes.h"

#include <algorithm>
#include <array>

#include "kernels/amx_tiles.h"

namespace hybridnet::kernels {

#if defined(__x86_64__)
namespace {

constexpr int64_t kSide = 16;                     // rows and columns of the sums of a tile
constexpr int64_t kStep = kAmxQuads * kByteQuad;  // bytes of a row of a tile
static_assert(kSide == kByteUnit);

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
HYBRIDNET_AMX [[gnu::noinline]] void sum_tiles(const ByteBlock& b, int64_t row, int64_t column) {
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

constexpr std::array<TileShapes, kSide> kShapes = [] {  // for 1 to kSide rows
  std::array<TileShapes, kSide> shapes;
  for (int rows = 1; rows <= kSide; ++rows) shapes[static_cast<size_t>(rows - 1)] = TileShapes(rows);
  return shapes;
}();

}  // namespace

void amx_block(const ByteBlock& b) {
  const TileScope scope(&kShapes[static_cast<size_t>(std::min(b.count, kSide) - 1)]);
  int64_t column = 0;
  for (; column + 2 * kSide <= b.columns; column += 2 * kSide) sum_columns<true>(b, column);
  if (column < b.columns) sum_columns<false>(b, column);
}
#else
void amx_block(const ByteBlock&) {}  // has_amx() is false
#endif

}  // namespace hybridnet::kernels
