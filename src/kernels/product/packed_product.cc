#include "kernels/product/packed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/packed_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/isa.h"
#include "kernels/memory/transpose_tile.h"
#include "kernels/product/product_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// ---- packing

// Columns are divided into blocks of kVectors whole vectors; the remaining columns are one more block, with as many
// vectors as it needs. The block that begins at column j begins at packed + j * depth. A whole block consists of
// consecutive parts of part_of(kVectors) vectors, each for the full depth; the last block is a single part, as wide as
// its columns.
constexpr int kVectors = 4;

template <typename T>
constexpr int64_t wide_block() {
  return kVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Copies all weights to `to` (depth, columns).
struct Pack {
  template <typename T>
  HWY_INLINE static void part(const ProductWeights<T>& w, T* to) {
    if (w.depth_stride == 1) return transpose(w.data, w.column_stride, w.columns, w.depth, to, w.columns);
    for (int64_t k = 0; k < w.depth; ++k)
      for (int64_t j = 0; j < w.columns; ++j) to[k * w.columns + j] = w.data[k * w.depth_stride + j * w.column_stride];
  }
};

// Copies all of `from` (depth, columns) to the weights.
struct Unpack {
  template <typename T>
  HWY_INLINE static void part(const ProductWeights<T>& w, const T* from) {
    T* const to = const_cast<T*>(w.data);
    if (w.depth_stride == 1) return transpose(from, w.columns, w.depth, w.columns, to, w.column_stride);
    for (int64_t k = 0; k < w.depth; ++k)
      for (int64_t j = 0; j < w.columns; ++j) to[k * w.depth_stride + j * w.column_stride] = from[k * w.columns + j];
  }
};

// Copies the block of `columns` columns that begins at column j, in parts of `part` columns.
template <class Way, typename T, typename P>
HWY_INLINE void move_block(const ProductWeights<T>& w, int64_t j, int64_t columns, int64_t part, P* packed) {
  for (const int64_t end = j + columns; j < end; j += part, packed += part * w.depth)
    Way::template part<T>({w.data + j * w.column_stride, w.depth, part, w.depth_stride, w.column_stride}, packed);
}

// P is T, or const T if packed is read.
template <class Way, typename T, typename P>
void move(const ProductWeights<T>& w, P* packed) {
  const int64_t wide = wide_block<T>();
  parallel_for(divided_up(w.columns, wide), 0.4 * static_cast<double>(wide * w.depth), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin * wide; j < std::min(end * wide, w.columns); j += wide) {
      const int64_t columns = std::min(wide, w.columns - j);
      move_block<Way>(w, j, columns, columns == wide ? wide / kVectors * part_of(kVectors) : columns,
                      packed + j * w.depth);
    }
  });
}

// ---- products

// Elements [begin, end) of the depth, which a tile processes in one pass.
struct DepthRange {
  int64_t begin, end;
};

// The weights that tiles prefetch (product_tile.h).
enum class Fetching : int8_t { kNothing, kNextPart, kNextPass };

template <typename T>
Fetching fetching_for(int64_t weights, int64_t rows) {
  if (streaming_pays<T>(weights, rows)) return Fetching::kNextPass;
  return fetching_pays<T>(weights, rows) ? Fetching::kNextPart : Fetching::kNothing;
}

// One block of columns. All pointers point to its first row and column.
template <typename T>
struct BlockProduct {
  const T* packed;
  int64_t depth;
  DepthRange range;
  const T* rows;
  int64_t row_stride, count;
  const T* start;  // the addend, with the layout of out, or null
  T* out;
  int64_t out_stride;
  Fetching fetching;
};

// The operations at the end of a product.
template <typename T>
struct ProductEnd {
  const T* bias;  // or null
  T low, high;
};

// Not inlined, for the reason given at add_tile of recurrent_step.cc. kLast: the last block, whose last vector has
// `last` columns; then column is 0.
template <int kRows, int kWidth, int kPart, bool kLast, class D, typename T>
HWY_NOINLINE void product_tile(D d, const BlockProduct<T>& b, const ProductEnd<T>* end, int64_t row, int64_t column,
                               int64_t last, Fetch fetch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), at = row * b.out_stride + column;
  const auto load = [d, lanes, last](const T* from, int v) HWY_ATTR {
    if (kLast && v == kWidth - 1) return load_part(d, from + v * lanes, last, T(0));
    return hn::LoadU(d, from + v * lanes);
  };
  hn::Vec<D> sums[kRows][kWidth];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v) sums[r][v] = b.start ? load(b.start + at + r * b.out_stride, v) : hn::Zero(d);
  const T* const rows = b.rows + row * b.row_stride;
  if constexpr (kLast) {
    const int64_t columns = (kWidth - 1) * lanes + last;
    add_last_products<kRows, kWidth>(d, b.packed, columns, b.depth, rows, b.row_stride, b.range.begin, b.range.end,
                                     sums);
  } else {
    add_products<kRows, kWidth, kPart>(d, b.packed + column * b.depth, b.depth, rows, b.row_stride, b.range.begin,
                                       b.range.end, fetch, sums);
  }
  if (end) {
    const auto low = hn::Set(d, end->low), high = hn::Set(d, end->high);
    for (int v = 0; v < kWidth; ++v) {
      const auto bias = end->bias ? load(end->bias + column, v) : hn::Zero(d);
      for (int r = 0; r < kRows; ++r) sums[r][v] = bounded(hn::Add(sums[r][v], bias), low, high);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v) {
      T* const to = b.out + at + r * b.out_stride + v * lanes;
      if (kLast && v == kWidth - 1) {
        store_part(sums[r][v], d, to, last);
      } else {
        hn::StoreU(sums[r][v], d, to);
      }
    }
}

template <class D, typename T>
HWY_INLINE void whole_block(D d, const BlockProduct<T>& b, const ProductEnd<T>* end) {
  constexpr int kPart = part_of(kVectors);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), depth = b.range.end - b.range.begin;
  const bool near = b.fetching == Fetching::kNextPart;
  const T* const next = b.packed + (near ? b.range.begin : b.range.end) * kPart * lanes;
  const auto fetch_of = [&](int64_t row, int rows, int first, int width) HWY_ATTR {
    if (b.fetching == Fetching::kNothing) return Fetch{};
    const int64_t part = near ? first + width : first;
    return share_of(next + part * lanes * b.depth, depth * kPart * lanes, depth, row, rows, b.count, near);
  };
  for_part_tiles<kVectors>(b.count, [&](int64_t row, auto tile, int first, auto width) HWY_ATTR {
    constexpr int kRows = decltype(tile)::value, kTileWidth = decltype(width)::value;
    product_tile<kRows, kTileWidth, kPart, false>(d, b, end, row, first * lanes, 0,
                                                  fetch_of(row, kRows, first, kTileWidth));
  });
}

// Computes the last block, whose `columns` columns do not fill a whole block.
template <int kWidth = kVectors, class D, typename T>
HWY_INLINE void last_block(D d, const BlockProduct<T>& b, const ProductEnd<T>* end, int64_t columns) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), last = columns - (kWidth - 1) * lanes;
  if constexpr (kWidth > 1) {
    if (last <= 0) return last_block<kWidth - 1>(d, b, end, columns);
  }
  for_tiles<tile_rows(kWidth)>(b.count, [&](int64_t row, auto tile) HWY_ATTR {
    product_tile<decltype(tile)::value, kWidth, kWidth, true>(d, b, end, row, 0, last, {});
  });
}

// A part of the weights (two vectors per element) stays in the caches while all rows of a task are multiplied with it,
// and these rows stay there for all parts. Few rows are multiplied over the whole depth at once: then the weights are
// read in memory order.
constexpr int64_t kMaxDepth = 768;
constexpr int64_t kRowBytes = 384 << 10;

template <typename T>
int64_t depth_of_pass(int64_t depth, int64_t rows) {
  if (depth * rows * static_cast<int64_t>(sizeof(T)) <= kRowBytes) return std::max<int64_t>(depth, 1);
  return divided_up(depth, divided_up(depth, kMaxDepth));
}

// Calls f(range) for the passes.
template <class F>
HWY_INLINE void for_passes(int64_t depth, int64_t step, const F& f) {
  int64_t k = 0;
  do {
    const DepthRange range{k, std::min(k + step, depth)};
    f(range);
    k = range.end;
  } while (k < depth);
}

template <typename T>
struct Tasks {
  static constexpr int64_t kMinRows = 48, kMaxRows = 240, kRowUnit = tile_rows(part_of(kVectors));
  static constexpr int64_t kMaxBlocks = 4;  // blocks of columns
  static constexpr int64_t kMany = 16;      // with this many tasks, cores share the work evenly
  int64_t rows, row_blocks, columns, count;
  explicit Tasks(const PackedProduct<T>& p) {
    const int64_t row_bytes = std::clamp<int64_t>(p.depth, 1, kMaxDepth) * static_cast<int64_t>(sizeof(T));
    const int64_t column_blocks = divided_up(p.columns, wide_block<T>());
    int64_t most = std::clamp(kRowBytes / row_bytes, kMinRows, kMaxRows);
    if (divided_up(p.count, most) * column_blocks < kMany) most = std::max(kMinRows, p.count * column_blocks / kMany);
    rows = divided_up(divided_up(p.count, divided_up(p.count, most)), kRowUnit) * kRowUnit;
    row_blocks = divided_up(p.count, rows);
    columns = std::clamp<int64_t>(row_blocks * column_blocks / kMany, 1, kMaxBlocks) * wide_block<T>();
    count = row_blocks * divided_up(p.columns, columns);
  }
};

template <typename T>
void run_task(const PackedProduct<T>& p, const Tasks<T>& tasks, int64_t task) {
  const int64_t first = task / tasks.row_blocks * tasks.columns, row = task % tasks.row_blocks * tasks.rows;
  const int64_t rows = std::min(tasks.rows, p.count - row);
  const Fetching fetching = fetching_for<T>(p.depth * p.columns, rows);
  const hn::ScalableTag<T> d;
  const int64_t wide = wide_block<T>(), last = std::min(first + tasks.columns, p.columns);
  const auto multiply = [&](DepthRange range, int64_t from, int64_t to) HWY_ATTR {
    const T* const start = range.begin > 0 ? p.out : p.addend;
    for (int64_t j = from; j < to; j += wide) {
      const int64_t at = row * p.columns + j;
      const ProductEnd<T> bounds{p.bias ? p.bias + j : nullptr, p.low, p.high};
      const ProductEnd<T>* const end = range.end == p.depth ? &bounds : nullptr;
      const BlockProduct<T> block{p.packed + j * p.depth,
                                  p.depth,
                                  range,
                                  p.rows + row * p.depth,
                                  p.depth,
                                  rows,
                                  start ? start + at : nullptr,
                                  p.out + at,
                                  p.columns,
                                  fetching};
      if (last - j >= wide) {
        whole_block(d, block, end);
      } else {
        last_block(d, block, end, last - j);
      }
    }
  };
  if (fetching == Fetching::kNextPass) {
    for (int64_t j = first; j < last; j += wide)
      for_passes(p.depth, kStreamDepth,
                 [&](DepthRange range) HWY_ATTR { multiply(range, j, std::min(j + wide, last)); });
  } else {
    for_passes(p.depth, depth_of_pass<T>(p.depth, rows),
               [&](DepthRange range) HWY_ATTR { multiply(range, first, last); });
  }
  if (p.ends) p.ends->end({row, first, rows, std::min(tasks.columns, p.columns - first)});
}

template <typename T>
void product(const PackedProduct<T>& p) {
  if (p.count == 0 || p.columns == 0) return;
  const Tasks<T> tasks(p);
  // With one or two rows, reading the weights takes as long as with three.
  const double rows = static_cast<double>(std::clamp<int64_t>(p.count, 3, std::max<int64_t>(3, tasks.rows)));
  const double ns = 0.02 * (1 + rows * static_cast<double>(p.depth * tasks.columns));
  parallel_for(tasks.count, ns, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) run_task(p, tasks, task);
  });
}

void pack_float(const ProductWeights<float>& w, float* p) { move<Pack>(w, p); }
void pack_double(const ProductWeights<double>& w, double* p) { move<Pack>(w, p); }
void unpack_float(const ProductWeights<float>& w, const float* p) { move<Unpack>(w, p); }
void product_float(const PackedProduct<float>& p) { product(p); }
void product_double(const PackedProduct<double>& p) { product(p); }

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(unpack_float);
HWY_EXPORT(product_float);
HWY_EXPORT(product_double);

bool packed_products_pay() { return isa_in_force().level >= Isa::kAvx2; }

void pack_weights(const ProductWeights<float>& w, float* packed) { HWY_DYNAMIC_DISPATCH(pack_float)(w, packed); }
void pack_weights(const ProductWeights<double>& w, double* packed) { HWY_DYNAMIC_DISPATCH(pack_double)(w, packed); }
void unpack_weights(const float* packed, const ProductWeights<float>& w) {
  HWY_DYNAMIC_DISPATCH(unpack_float)(w, packed);
}
void packed_product(const PackedProduct<float>& p) { HWY_DYNAMIC_DISPATCH(product_float)(p); }
void packed_product(const PackedProduct<double>& p) { HWY_DYNAMIC_DISPATCH(product_double)(p); }
}  // namespace hybridnet::kernels
#endif
