#include "kernels/product/byte_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/byte_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "hybridnet/threads.h"
#include "kernels/amx_tiles.h"
#include "kernels/isa.h"
#include "kernels/product/amx_bytes.h"
#include "kernels/product/byte_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D32 = hn::CappedTag<int32_t, kByteUnit>;
using V32 = hn::Vec<D32>;
constexpr int64_t kLanes = hn::MaxLanes(D32());

constexpr int64_t kPartQuads = 32;     // 8 KB of weights
constexpr int64_t kWideningRows = 12;  // from this number of rows on, weights are converted to 16 bits once for all

HWY_INLINE int32_t load_word(const char* from) {
  int32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Adds products of four bytes in 16-bit pairs, which cannot overflow: bytes 0 and 2, then 1 and 3. Instructions that
// multiply bytes directly saturate in 16 bits.
struct PairDot {
  static constexpr int64_t kQuadBytes = 8;  // a quad of a row, as pairs of 16-bit integers
  static constexpr int64_t kColumnBytes = 4;
  using D16 = hn::Repartition<int16_t, D32>;
  struct Pairs {
    hn::Vec<D16> even, odd;
  };
  static HWY_INLINE Pairs weights(const int8_t* from) {
    const auto all = hn::BitCast(D16(), hn::LoadU(hn::Repartition<int8_t, D32>(), from));
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(all)), hn::ShiftRight<8>(all)};
  }
  static HWY_INLINE Pairs row(const char* from) {
    return {hn::BitCast(D16(), hn::Set(D32(), load_word(from))),
            hn::BitCast(D16(), hn::Set(D32(), load_word(from + 4)))};
  }
  static HWY_INLINE V32 add(V32 sum, const Pairs& row, const Pairs& weights) {
    V32 other = hn::Zero(D32());
    sum = hn::ReorderWidenMulAccumulate(D32(), row.even, weights.even, sum, other);
    sum = hn::ReorderWidenMulAccumulate(D32(), row.odd, weights.odd, sum, other);
    return hn::RearrangeToOddPlusEven(sum, other);
  }
};

// The same with weights that are pairs already: for each vector of columns, bytes 0 and 2, then 1 and 3.
struct WidePairDot : PairDot {
  static constexpr int64_t kColumnBytes = 8;
  static HWY_INLINE void widen(const int8_t* from, int8_t* to) {
    const Pairs pairs = PairDot::weights(from);
    auto* const wide = reinterpret_cast<int16_t*>(to);
    hn::StoreU(pairs.even, D16(), wide);
    hn::StoreU(pairs.odd, D16(), wide + 2 * kLanes);
  }
  static HWY_INLINE Pairs weights(const int8_t* from) {
    const auto* const wide = reinterpret_cast<const int16_t*>(from);
    return {hn::LoadU(D16(), wide), hn::LoadU(D16(), wide + 2 * kLanes)};
  }
};

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
// The instruction of AVX-512 VNNI for unsigned bytes of a row. The target of this code does not include it, so it is
// written in assembly; has_avx512_vnni() tells whether the machine has it.
struct VnniDot {
  static constexpr int64_t kQuadBytes = 4, kColumnBytes = 4;
  static HWY_INLINE V32 weights(const int8_t* from) {
    return hn::BitCast(D32(), hn::LoadU(hn::Repartition<int8_t, D32>(), from));
  }
  static HWY_INLINE V32 row(const char* from) { return hn::Set(D32(), load_word(from)); }
  static HWY_INLINE V32 add(V32 sum, V32 row, V32 weights) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(row.raw), "v"(weights.raw));
    return sum;
  }
};
#endif

// Computes kRows rows and kVectors vectors of columns from `column` on.
template <class Dot, int kRows, int kVectors>
HWY_NOINLINE void byte_tile(const ByteBlock& b, int64_t row, int64_t column) {
  const D32 d;
  int32_t* const out = b.sums + row * kByteTileColumns + column;
  V32 sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] = b.adds ? hn::LoadU(d, out + r * kByteTileColumns + v * kLanes) : hn::Zero(d);
  const int8_t* w = b.weights + column * Dot::kColumnBytes;
  const char* x = b.rows + row * b.row_bytes;
  Ahead<kVectors * kLanes * kByteQuad> ahead(b.ahead, row == 0, column * kByteQuad, b.columns * kByteQuad);
  for (int64_t q = 0; q < b.quads; ++q, w += b.columns * Dot::kColumnBytes, x += Dot::kQuadBytes) {
    ahead.fetch();
    if constexpr (kRows <= kVectors) {  // keeps the smaller set of factors in registers
      decltype(Dot::row(x)) rows[kRows];
      for (int r = 0; r < kRows; ++r) rows[r] = Dot::row(x + r * b.row_bytes);
      for (int v = 0; v < kVectors; ++v) {
        const auto weights = Dot::weights(w + v * kLanes * Dot::kColumnBytes);
        for (int r = 0; r < kRows; ++r) sums[r][v] = Dot::add(sums[r][v], rows[r], weights);
      }
    } else {
      decltype(Dot::weights(w)) weights[kVectors];
      for (int v = 0; v < kVectors; ++v) weights[v] = Dot::weights(w + v * kLanes * Dot::kColumnBytes);
      for (int r = 0; r < kRows; ++r) {
        const auto factors = Dot::row(x + r * b.row_bytes);
        for (int v = 0; v < kVectors; ++v) sums[r][v] = Dot::add(sums[r][v], factors, weights[v]);
      }
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    const V32 shift = b.shift ? hn::LoadU(d, b.shift + column + v * kLanes) : hn::Zero(d);
    for (int r = 0; r < kRows; ++r) hn::StoreU(hn::Sub(sums[r][v], shift), d, out + r * kByteTileColumns + v * kLanes);
  }
}

// Covers the columns of a block with tiles of kVectors vectors, then of single vectors.
template <class Dot, int kRows, int kVectors>
HWY_INLINE void row_tile(const ByteBlock& b, int64_t row) {
  int64_t column = 0;
  for (; column + kVectors * kLanes <= b.columns; column += kVectors * kLanes)
    byte_tile<Dot, kRows, kVectors>(b, row, column);
  for (; column < b.columns; column += kLanes) byte_tile<Dot, kRows, 1>(b, row, column);
}

// Calls f(part) for parts of the depth whose weights stay in the first-level cache while all rows are multiplied.
template <class Dot, class F>
HWY_INLINE void for_depth_parts(const ByteBlock& b, const F& f) {
  int64_t first = 0;
  do {
    ByteBlock part = b;
    part.quads = std::min(kPartQuads, b.quads - first);
    part.weights += first * b.columns * kByteQuad;
    part.rows += first * Dot::kQuadBytes;
    part.adds = b.adds || first > 0;
    first += part.quads;
    part.ahead = b.weights + first * b.columns * kByteQuad;  // the next part, or the next block
    if (first < b.quads) part.shift = nullptr;
    f(part);
  } while (first < b.quads);
}

// The most vectors of a tile for one row: a whole block, whose weights are then read in memory order.
constexpr int kBlockVectors = static_cast<int>(std::min<int64_t>(kByteTileColumns / kLanes, 8));

// The sums and factors of these tiles fit into 16 registers.
template <class Dot>
HWY_INLINE void tiles_of_pairs(const ByteBlock& b) {
  int64_t row = 0;
  for (; b.count - row >= 4; row += 4) row_tile<Dot, 4, 2>(b, row);
  for (; b.count - row >= 2; row += 2) row_tile<Dot, 2, 4>(b, row);
  if (row < b.count) row_tile<Dot, 1, kBlockVectors>(b, row);
}

void block_of_pairs(const ByteBlock& b) {
  if (b.count == 1) return row_tile<PairDot, 1, kBlockVectors>(b, 0);
  if (b.count < kWideningRows)
    return for_depth_parts<PairDot>(b, [](const ByteBlock& part) { tiles_of_pairs<PairDot>(part); });
  for_depth_parts<PairDot>(b, [](const ByteBlock& part) {
    alignas(64) int8_t wide[kPartQuads * kByteTileColumns * WidePairDot::kColumnBytes];
    for (int64_t i = 0; i < part.quads * part.columns; i += kLanes)
      WidePairDot::widen(part.weights + i * PairDot::kColumnBytes, wide + i * WidePairDot::kColumnBytes);
    ByteBlock widened = part;
    widened.weights = wide;
    tiles_of_pairs<WidePairDot>(widened);
  });
}

void block_of_quads(const ByteBlock& b) {
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
  if (b.count == 1) return row_tile<VnniDot, 1, 4>(b, 0);
  for_depth_parts<VnniDot>(b, [](const ByteBlock& part) {
    int64_t row = 0;
    for (; part.count - row >= 6; row += 6) row_tile<VnniDot, 6, 4>(part, row);
    for (; part.count - row >= 4; row += 4) row_tile<VnniDot, 4, 4>(part, row);
    for (; part.count - row >= 2; row += 2) row_tile<VnniDot, 2, 4>(part, row);
    if (row < part.count) row_tile<VnniDot, 1, 4>(part, row);
  });
#else
  block_of_pairs(b);
#endif
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {

HWY_EXPORT(block_of_pairs);
HWY_EXPORT(block_of_quads);

// Calls f(first column, columns, packed bytes) for the blocks of packed weights, in parallel.
template <class F>
void for_byte_blocks(int64_t depth, int64_t columns, int64_t bytes_per_ns, const F& f) {
  const int64_t quads = byte_quads(depth), padded = padded_columns(columns);
  const int64_t block = kByteTileColumns * quads * kByteQuad;
  parallel_for((padded + kByteTileColumns - 1) / kByteTileColumns,
               static_cast<double>(block) / static_cast<double>(bytes_per_ns), [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t first = i * kByteTileColumns;
                   f(first, std::min(kByteTileColumns, padded - first), i * block);
                 }
               });
}

// Widens a row to pairs of 16-bit integers: elements 0 and 2, 1 and 3 of each four.
template <typename X>
void widen_row(const X* from, int64_t depth, int16_t* to) {
  std::fill_n(to + depth / kByteQuad * kByteQuad, byte_quads(depth) * kByteQuad - depth / kByteQuad * kByteQuad,
              int16_t{0});
  int64_t k = 0;
  for (; k + kByteQuad <= depth; k += kByteQuad) {
    to[k] = from[k];
    to[k + 1] = from[k + 2];
    to[k + 2] = from[k + 1];
    to[k + 3] = from[k + 3];
  }
  constexpr int64_t kPlace[] = {0, 2, 1};
  for (int64_t i = 0; k + i < depth; ++i) to[k + kPlace[i]] = from[k + i];
}

// Makes the bytes of a row unsigned: signed ones grow by 128.
void shift_row(const uint8_t* from, int64_t depth, uint8_t shift, uint8_t* to) {
  for (int64_t k = 0; k < depth; ++k) to[k] = static_cast<uint8_t>(from[k] ^ shift);
  std::fill(to + depth, to + byte_quads(depth) * kByteQuad, uint8_t{0});
}

int64_t row_bytes(int64_t depth, bool vnni) { return byte_quads(depth) * (vnni ? 4 : 8); }

void prepare_rows(const ByteProduct& p, bool vnni, char* to) {
  const int64_t bytes = row_bytes(p.depth, vnni);
  parallel_for(p.count, 0.3 * static_cast<double>(p.depth), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const uint8_t* from = static_cast<const uint8_t*>(p.rows) + r * p.depth;
      if (vnni)
        shift_row(from, p.depth, p.is_signed ? 0x80 : 0, reinterpret_cast<uint8_t*>(to + r * bytes));
      else if (p.is_signed)
        widen_row(reinterpret_cast<const int8_t*>(from), p.depth, reinterpret_cast<int16_t*>(to + r * bytes));
      else
        widen_row(from, p.depth, reinterpret_cast<int16_t*>(to + r * bytes));
    }
  });
}

// The most rows of a task: their sums stay in the first-level cache.
constexpr int64_t kTileRows = 48, kAmxTileRows = 128;
constexpr int64_t kFewestAmxRows = 5;  // fewer are multiplied at the rate of reading the weights

enum class Unit : int8_t { kPairs, kVnni, kAmx };

// Tiles of AMX for what fills them, VNNI for the rest of the depth.
void amx_and_rest(const ByteBlock& b) {
  amx_block(b);
  ByteBlock rest = b;
  rest.quads = b.quads % kAmxQuads;
  rest.weights += (b.quads - rest.quads) * b.columns * kByteQuad;
  rest.rows += (b.quads - rest.quads) * kByteQuad;
  rest.adds = true;
  if (rest.quads > 0 || rest.shift) HWY_DYNAMIC_DISPATCH(block_of_quads)(rest);
}

void multiply(Unit unit, const ByteBlock& b) {
  if (unit == Unit::kPairs) return HWY_DYNAMIC_DISPATCH(block_of_pairs)(b);
  if (unit == Unit::kAmx && b.count >= kFewestAmxRows) return amx_and_rest(b);
  HWY_DYNAMIC_DISPATCH(block_of_quads)(b);
}

// Nanoseconds of a block of weights with this many rows: reading it, or multiplying.
double block_ns(int64_t depth, int64_t rows, Unit unit) {
  const double bytes = static_cast<double>(byte_quads(depth) * kByteQuad * kByteTileColumns);
  const double product_ns = unit == Unit::kAmx ? 0.001 : unit == Unit::kVnni ? 0.004 : 0.017;
  return bytes * std::max(0.06, static_cast<double>(rows) * product_ns);
}

Unit unit_for(const ByteProduct& p) {
  if (!has_avx512_vnni()) return Unit::kPairs;
  return has_amx() && p.count >= kFewestAmxRows && byte_quads(p.depth) >= kAmxQuads ? Unit::kAmx : Unit::kVnni;
}

// The rows of a task. Weights are read once for all of them, but there should be a task for each core.
int64_t task_rows(Unit unit, int64_t count, int64_t column_tasks) {
  if (unit != Unit::kAmx) return kTileRows;
  int64_t rows = kAmxTileRows;
  while (rows > 32 && (count + rows - 1) / rows * column_tasks < current_cores()) rows /= 2;
  return rows;
}

}  // namespace

int64_t packed_byte_weights(int64_t depth, int64_t columns) {
  return padded_columns(columns) * (byte_quads(depth) * kByteQuad + static_cast<int64_t>(sizeof(int32_t)));
}

void pack_byte_weights(const int8_t* weights, int64_t depth, int64_t columns, void* packed) {
  auto* const bytes = static_cast<int8_t*>(packed);
  int32_t* const shifts = byte_shifts(packed, depth, columns);
  for_byte_blocks(depth, columns, 1, [&](int64_t first, int64_t width, int64_t at) {
    int8_t* const block = bytes + at;
    std::fill_n(block, width * byte_quads(depth) * kByteQuad, int8_t{0});
    for (int64_t j = 0; j < width; ++j) {
      const int8_t* const from = weights + (first + j) * depth;
      uint32_t sum = 0;
      for (int64_t k = 0; k < depth && first + j < columns; ++k) {
        block[(k / kByteQuad * width + j) * kByteQuad + k % kByteQuad] = from[k];
        sum += static_cast<uint32_t>(from[k]);
      }
      shifts[first + j] = static_cast<int32_t>(sum * 128);
    }
  });
}

void unpack_byte_weights(const void* packed, int64_t depth, int64_t columns, int8_t* weights) {
  for_byte_blocks(depth, columns, 1, [&](int64_t first, int64_t width, int64_t at) {
    const int8_t* const block = static_cast<const int8_t*>(packed) + at;
    for (int64_t j = 0; j < std::min(width, columns - first); ++j)
      for (int64_t k = 0; k < depth; ++k)
        weights[(first + j) * depth + k] = block[(k / kByteQuad * width + j) * kByteQuad + k % kByteQuad];
  });
}

std::string byte_packing(int64_t depth, int64_t columns) {
  return "byte quads " + std::to_string(columns) + " x " + std::to_string(depth);
}

std::vector<Unpacking> byte_unpacking(int64_t depth, int64_t columns) {
  const auto write = [depth, columns](const void* packed, void* to) {
    unpack_byte_weights(packed, depth, columns, static_cast<int8_t*>(to));
  };
  return {{0, depth * columns, write}};
}

int64_t byte_product_workspace(int64_t depth, int64_t count) { return count * row_bytes(depth, has_avx512_vnni()); }

void byte_product(const ByteProduct& p) {
  const Unit unit = unit_for(p);
  const bool vnni = unit != Unit::kPairs;
  const bool as_they_are = vnni && !p.is_signed && p.depth % kByteQuad == 0;
  if (!as_they_are) prepare_rows(p, vnni, static_cast<char*>(p.workspace));
  const char* const prepared = static_cast<const char*>(as_they_are ? p.rows : p.workspace);
  const int64_t quads = byte_quads(p.depth), padded = padded_columns(p.columns);
  const int64_t column_tasks = (padded + kByteTileColumns - 1) / kByteTileColumns;
  const int64_t tile_rows = task_rows(unit, p.count, column_tasks);
  const int64_t row_tasks = (p.count + tile_rows - 1) / tile_rows;
  const int32_t* const shifts = vnni && p.is_signed ? byte_shifts(p.packed, p.depth, p.columns) : nullptr;
  const int64_t block_bytes = kByteTileColumns * quads * kByteQuad;
  const auto task = [&](int64_t i) {
    const int64_t column = i / row_tasks * kByteTileColumns, row = i % row_tasks * tile_rows;
    alignas(64) int32_t sums[kAmxTileRows * kByteTileColumns];
    const int64_t rows = std::min(tile_rows, p.count - row);
    const int8_t* const weights = static_cast<const int8_t*>(p.packed) + column * quads * kByteQuad;
    const bool fetches = unit == Unit::kAmx && column + kByteTileColumns < padded;
    multiply(unit, {.weights = weights,
                    .columns = std::min(kByteTileColumns, padded - column),
                    .quads = quads,
                    .rows = prepared + row * row_bytes(p.depth, vnni),
                    .row_bytes = row_bytes(p.depth, vnni),
                    .count = rows,
                    .shift = shifts ? shifts + column : nullptr,
                    .sums = sums,
                    .ahead = fetches ? weights + block_bytes : nullptr});
    p.ends->end({row, column, rows, std::min(kByteTileColumns, p.columns - column)}, sums, kByteTileColumns);
  };
  parallel_for(row_tasks * column_tasks, block_ns(p.depth, std::min(tile_rows, p.count), unit),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) task(i);
               });
}

}  // namespace hybridnet::kernels
#endif
