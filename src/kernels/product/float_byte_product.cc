#include "kernels/product/byte_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/float_byte_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/product/byte_blocks.h"

#ifndef HYBRIDNET_FLOAT_BYTE_BLOCK_
#define HYBRIDNET_FLOAT_BYTE_BLOCK_
namespace hybridnet::kernels {
namespace {

// One block of weights and the rows to multiply with it.
struct FloatBlock {
  const int8_t* weights;
  int64_t columns, quads;
  const float* rows;
  int64_t row_stride, count;
  float* sums;                    // rows of kByteTileColumns
  bool adds = false;              // to the sums that are there
  const int8_t* ahead = nullptr;  // the weights to prefetch; or null
};

}  // namespace
}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, kByteUnit>;
using D32 = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
constexpr int64_t kLanes = hn::MaxLanes(DF());

// Weights as they are packed: byte `i` of a vector of quads.
struct PackedBytes {
  static constexpr int64_t kColumnBytes = 4;
  template <int i>
  static HWY_INLINE VF at(const int8_t* quads, int64_t /*columns*/) {
    const auto words = hn::BitCast(D32(), hn::LoadU(hn::Repartition<int8_t, D32>(), quads));
    return hn::ConvertTo(DF(), hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * i>(words)));
  }
};

// Weights that were converted: for each quad, the floats of byte 0 of all columns, then those of byte 1, ...
struct ConvertedBytes {
  static constexpr int64_t kColumnBytes = 16;
  template <int i>
  static HWY_INLINE VF at(const int8_t* quads, int64_t columns) {
    return hn::LoadU(DF(), reinterpret_cast<const float*>(quads) + i * columns);
  }
};

template <class Weights, int kByte, int kRows, int kVectors>
HWY_INLINE void add_products_of_byte(const FloatBlock& b, const int8_t* w, const float* x,
                                     VF (&sums)[kRows][kVectors]) {
  VF weights[kVectors];
  for (int v = 0; v < kVectors; ++v) weights[v] = Weights::template at<kByte>(w + v * kLanes * 4, b.columns);
  for (int r = 0; r < kRows; ++r) {
    const VF factor = hn::Set(DF(), x[r * b.row_stride + kByte]);
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, weights[v], sums[r][v]);
  }
}

// Computes kRows rows and kVectors vectors of columns from `column` on.
template <class Weights, int kRows, int kVectors>
HWY_NOINLINE void float_tile(const FloatBlock& b, int64_t row, int64_t column) {
  const DF d;
  float* const out = b.sums + row * kByteTileColumns + column;
  VF sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = b.adds ? hn::LoadU(d, out + r * kByteTileColumns + v * kLanes) : hn::Zero(d);
  const int8_t* w = b.weights + column * 4;
  const float* x = b.rows + row * b.row_stride;
  Ahead<kVectors * kLanes * kByteQuad> ahead(b.ahead, row == 0, column * kByteQuad, b.columns * kByteQuad);
  for (int64_t q = 0; q < b.quads; ++q, w += b.columns * Weights::kColumnBytes, x += kByteQuad) {
    ahead.fetch();
    add_products_of_byte<Weights, 0>(b, w, x, sums);
    add_products_of_byte<Weights, 1>(b, w, x, sums);
    add_products_of_byte<Weights, 2>(b, w, x, sums);
    add_products_of_byte<Weights, 3>(b, w, x, sums);
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, out + r * kByteTileColumns + v * kLanes);
}

template <class Weights, int kRows, int kVectors>
HWY_INLINE void row_tile(const FloatBlock& b, int64_t row) {
  int64_t column = 0;
  for (; column + kVectors * kLanes <= b.columns; column += kVectors * kLanes)
    float_tile<Weights, kRows, kVectors>(b, row, column);
  for (; column < b.columns; column += kLanes) float_tile<Weights, kRows, 1>(b, row, column);
}

constexpr int64_t kPartQuads = 16;  // their floats take half of the first-level cache
constexpr bool kManyRegisters = HWY_TARGET <= HWY_AVX3;
// From this number of rows on, weights are converted once for all. A tile of 24 sums hides the conversion: on an AMD
// EPYC with AVX-512, GPT-2-small's weights take 15.1 ms instead of 18.3 for 12 rows, 117 instead of 123 for 96.
constexpr int64_t kConvertingRows = kManyRegisters ? INT64_MAX : 12;
constexpr int kWide = kManyRegisters ? 4 : 2;  // vectors of a tile of six rows
constexpr int kBlockVectors = static_cast<int>(std::min<int64_t>(kByteTileColumns / kLanes, 8));

template <class Weights>
HWY_INLINE void tiles_of(const FloatBlock& b) {
  int64_t row = 0;
  while (b.count - row == 6 || b.count - row >= 10) row_tile<Weights, 6, kWide>(b, row), row += 6;
  for (; b.count - row >= 4; row += 4) row_tile<Weights, 4, kWide>(b, row);
  for (; b.count - row >= 2; row += 2) row_tile<Weights, 2, 4>(b, row);
  if (row < b.count) row_tile<Weights, 1, kBlockVectors>(b, row);
}

void convert_part(const FloatBlock& b, float* to) {
  for (int64_t q = 0; q < b.quads; ++q, to += kByteQuad * b.columns) {
    for (int64_t j = 0; j < b.columns; j += kLanes) {
      const int8_t* const from = b.weights + (q * b.columns + j) * kByteQuad;
      hn::StoreU(PackedBytes::at<0>(from, b.columns), DF(), to + j);
      hn::StoreU(PackedBytes::at<1>(from, b.columns), DF(), to + b.columns + j);
      hn::StoreU(PackedBytes::at<2>(from, b.columns), DF(), to + 2 * b.columns + j);
      hn::StoreU(PackedBytes::at<3>(from, b.columns), DF(), to + 3 * b.columns + j);
    }
  }
}

void float_block(const FloatBlock& b) {
  if (b.count == 1) return row_tile<PackedBytes, 1, kBlockVectors>(b, 0);
  int64_t first = 0;
  do {
    FloatBlock part = b;
    part.quads = std::min(kPartQuads, b.quads - first);
    part.weights += first * b.columns * kByteQuad;
    part.rows += first * kByteQuad;
    part.adds = first > 0;
    first += part.quads;
    part.ahead = b.weights + first * b.columns * kByteQuad;  // the next part, or the next block
    if (b.count < kConvertingRows) {
      tiles_of<PackedBytes>(part);
      continue;
    }
    alignas(64) float floats[kPartQuads * kByteQuad * kByteTileColumns];
    convert_part(part, floats);
    part.weights = reinterpret_cast<const int8_t*>(floats);
    tiles_of<ConvertedBytes>(part);
  } while (first < b.quads);
}

// out = sums * scale + bias
void scale_row(const float* sums, const float* scale, const float* bias, int64_t n, float* out) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(d, sums + j), hn::LoadU(d, scale + j));
    hn::StoreU(bias ? hn::Add(scaled, hn::LoadU(d, bias + j)) : scaled, d, out + j);
  }
  for (; j < n; ++j) out[j] = sums[j] * scale[j] + (bias ? bias[j] : 0.0f);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {

HWY_EXPORT(float_block);
HWY_EXPORT(scale_row);

int64_t padded_depth(int64_t depth) { return byte_quads(depth) * kByteQuad; }

// Returns the rows, padded by zeros to whole quads.
const float* prepared_rows(const FloatByteProduct& p) {
  const int64_t depth = padded_depth(p.depth);
  if (depth == p.depth) return p.rows;
  auto* const to = static_cast<float*>(p.workspace);
  for (int64_t r = 0; r < p.count; ++r) {
    std::copy_n(p.rows + r * p.depth, p.depth, to + r * depth);
    std::fill_n(to + r * depth + p.depth, depth - p.depth, 0.0f);
  }
  return to;
}

constexpr int64_t kTileRows = 48;  // the most rows of a task: their sums stay in the first-level cache

// Nanoseconds of a block of weights with this many rows: reading and converting it, or multiplying.
double block_ns(int64_t depth, int64_t rows) {
  return static_cast<double>(padded_depth(depth) * kByteTileColumns) *
         std::max(0.06, 0.025 * static_cast<double>(rows));
}

}  // namespace

int64_t float_byte_product_workspace(int64_t depth, int64_t count) {
  return depth % kByteQuad == 0 ? 0 : count * padded_depth(depth) * static_cast<int64_t>(sizeof(float));
}

void float_byte_product(const FloatByteProduct& p) {
  const float* const rows = prepared_rows(p);
  const int64_t quads = byte_quads(p.depth), padded = padded_columns(p.columns);
  const int64_t row_tasks = (p.count + kTileRows - 1) / kTileRows;
  const int64_t column_tasks = (padded + kByteTileColumns - 1) / kByteTileColumns;
  const auto task = [&](int64_t i) {
    const int64_t column = i / row_tasks * kByteTileColumns, row = i % row_tasks * kTileRows;
    const int64_t count = std::min(kTileRows, p.count - row), width = std::min(kByteTileColumns, p.columns - column);
    alignas(64) float sums[kTileRows * kByteTileColumns];
    HWY_DYNAMIC_DISPATCH(float_block)
    ({.weights = static_cast<const int8_t*>(p.packed) + column * quads * kByteQuad,
      .columns = std::min(kByteTileColumns, padded - column),
      .quads = quads,
      .rows = rows + row * padded_depth(p.depth),
      .row_stride = padded_depth(p.depth),
      .count = count,
      .sums = sums});
    for (int64_t r = 0; r < count; ++r) HWY_DYNAMIC_DISPATCH(scale_row)
    (sums + r * kByteTileColumns, p.scale + column, p.bias ? p.bias + column : nullptr, width,
     p.out + (row + r) * p.columns + column);
  };
  parallel_for(row_tasks * column_tasks, block_ns(p.depth, std::min(kTileRows, p.count)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) task(i);
               });
}

}  // namespace hybridnet::kernels
#endif
