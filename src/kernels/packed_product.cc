#include "kernels/packed_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/isa.h"
#include "kernels/product_tile.h"
#include "kernels/transpose_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// ---- packing

// Columns are taken in blocks of kVectors whole vectors; what remains, in vectors of falling length. A block that
// begins at column j begins at packed + j * depth. It consists of parts of part_of(its vectors) vectors for all of the
// depth, one part behind the other.
constexpr int kVectors = 4;

template <typename T>
constexpr int64_t wide_block() {
  return kVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// to (depth, columns) = weights, all of them.
struct Pack {
  template <typename T>
  HWY_INLINE static void part(const ProductWeights<T>& w, T* to) {
    if (w.depth_stride == 1) return transpose(w.data, w.column_stride, w.columns, w.depth, to, w.columns);
    for (int64_t k = 0; k < w.depth; ++k)
      for (int64_t j = 0; j < w.columns; ++j) to[k * w.columns + j] = w.data[k * w.depth_stride + j * w.column_stride];
  }
};

// weights = from (depth, columns), all of them.
struct Unpack {
  template <typename T>
  HWY_INLINE static void part(const ProductWeights<T>& w, const T* from) {
    T* const to = const_cast<T*>(w.data);
    if (w.depth_stride == 1) return transpose(from, w.columns, w.depth, w.columns, to, w.column_stride);
    for (int64_t k = 0; k < w.depth; ++k)
      for (int64_t j = 0; j < w.columns; ++j) to[k * w.depth_stride + j * w.column_stride] = from[k * w.columns + j];
  }
};

// The block of kWidth vectors that begins at column j.
template <class Way, int kWidth, class D, typename T, typename P>
HWY_INLINE void move_block(D d, const ProductWeights<T>& w, int64_t j, P* packed) {
  constexpr int kPart = part_of(kWidth);
  const int64_t part = kPart * static_cast<int64_t>(hn::Lanes(d));
  for (int first = 0; first < kWidth; first += kPart, j += part, packed += part * w.depth)
    Way::template part<T>({w.data + j * w.column_stride, w.depth, part, w.depth_stride, w.column_stride}, packed);
}

// packed: P is T, const where it is read.
template <class Way, typename T, typename P>
void move(const ProductWeights<T>& w, P* packed) {
  const int64_t wide = wide_block<T>();
  parallel_for(divided_up(w.columns, wide), 0.4 * static_cast<double>(wide * w.depth), [&](int64_t begin, int64_t end) {
    for_wide_blocks<T, kVectors>(begin * wide, std::min(end * wide, w.columns),
                                 [&](auto d, auto vectors, int64_t j) HWY_ATTR {
                                   move_block<Way, decltype(vectors)::value>(d, w, j, packed + j * w.depth);
                                 });
  });
}

// ---- products

// Elements [begin, end) of the depth: what a tile passes at a time.
struct DepthRange {
  int64_t begin, end;
};

// One block of columns. All pointers are those of its first row and column.
template <typename T>
struct BlockProduct {
  const T* packed;
  int64_t depth;
  DepthRange range;
  const T* rows;
  int64_t row_stride, count;
  const T* start;  // what is added, as out; null: nothing
  T* out;
  int64_t out_stride;
  bool fetches;  // the weights that come next
};

// What ends a product.
template <typename T>
struct ProductEnd {
  const T* bias;  // null for none
  T low, high;
};

// Not inlined, for the reason given at add_tile of recurrent_step.cc.
template <int kRows, int kWidth, int kPart, class D, typename T>
HWY_NOINLINE void product_tile(D d, const BlockProduct<T>& b, const ProductEnd<T>* end, int64_t row, int64_t column,
                               Fetch fetch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), at = row * b.out_stride + column;
  hn::Vec<D> sums[kRows][kWidth];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v)
      sums[r][v] = b.start ? hn::LoadU(d, b.start + at + r * b.out_stride + v * lanes) : hn::Zero(d);
  add_products<kRows, kWidth, kPart>(d, b.packed + column * b.depth, b.depth, b.rows + row * b.row_stride, b.row_stride,
                                     b.range.begin, b.range.end, fetch, sums);
  if (end) {
    const auto low = hn::Set(d, end->low), high = hn::Set(d, end->high);
    for (int v = 0; v < kWidth; ++v) {
      const auto bias = end->bias ? hn::LoadU(d, end->bias + column + v * lanes) : hn::Zero(d);
      for (int r = 0; r < kRows; ++r) sums[r][v] = hn::Min(high, hn::Max(low, hn::Add(sums[r][v], bias)));
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v) hn::StoreU(sums[r][v], d, b.out + at + r * b.out_stride + v * lanes);
}

template <int kWidth, class D, typename T>
HWY_INLINE void product_block(D d, const BlockProduct<T>& b, const ProductEnd<T>* end) {
  constexpr int kPart = part_of(kWidth);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), depth = b.range.end - b.range.begin;
  const T* const next = b.packed + b.range.begin * kPart * lanes;
  for_part_tiles<kWidth>(b.count, [&](int64_t row, auto tile, int first, auto width) HWY_ATTR {
    constexpr int kRows = decltype(tile)::value, kTileWidth = decltype(width)::value;
    const Fetch fetch = b.fetches ? share_of(next + (first + kTileWidth) * lanes * b.depth, depth * kPart * lanes,
                                             depth, row, kRows, b.count)
                                  : Fetch{};
    product_tile<kRows, kTileWidth, kPart>(d, b, end, row, first * lanes, fetch);
  });
}

// A part of the weights (two vectors each) stays in the caches while all rows of a task pass over it, and these rows
// stay there while all parts do. Few rows pass the whole depth at once: so the weights are read as they lie in memory.
constexpr int64_t kMaxDepth = 768;
constexpr int64_t kRowBytes = 384 << 10;

template <typename T>
int64_t depth_of_pass(int64_t depth, int64_t rows) {
  if (depth * rows * static_cast<int64_t>(sizeof(T)) <= kRowBytes) return std::max<int64_t>(depth, 1);
  return divided_up(depth, divided_up(depth, kMaxDepth));
}

// f(range) for the passes.
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
  static constexpr int64_t kMaxBlocks = 4;  // of columns
  static constexpr int64_t kMany = 16;      // tasks, which cores share evenly
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
  const bool fetches = comes_from_afar<T>(p.depth * p.columns);
  for_passes(p.depth, depth_of_pass<T>(p.depth, rows), [&](DepthRange range) HWY_ATTR {
    const T* const start = range.begin > 0 ? p.out : p.addend;
    const auto block = [&](auto d, auto vectors, int64_t j) HWY_ATTR {
      const int64_t at = row * p.columns + j;
      const ProductEnd<T> end{p.bias ? p.bias + j : nullptr, p.low, p.high};
      product_block<decltype(vectors)::value>(
          d,
          BlockProduct<T>{p.packed + j * p.depth, p.depth, range, p.rows + row * p.depth, p.depth, rows,
                          start ? start + at : nullptr, p.out + at, p.columns, fetches},
          range.end == p.depth ? &end : nullptr);
    };
    for_wide_blocks<T, kVectors>(first, std::min(first + tasks.columns, p.columns), block);
  });
  if (p.ends) p.ends->end({row, first, rows, std::min(tasks.columns, p.columns - first)});
}

template <typename T>
void product(const PackedProduct<T>& p) {
  if (p.count == 0 || p.columns == 0) return;
  const Tasks<T> tasks(p);
  // Two rows and less wait for the weights, as three do.
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

bool packed_products_pay() { return isa_in_force().level == Isa::kAvx2; }

void pack_weights(const ProductWeights<float>& w, float* packed) { HWY_DYNAMIC_DISPATCH(pack_float)(w, packed); }
void pack_weights(const ProductWeights<double>& w, double* packed) { HWY_DYNAMIC_DISPATCH(pack_double)(w, packed); }
void unpack_weights(const float* packed, const ProductWeights<float>& w) {
  HWY_DYNAMIC_DISPATCH(unpack_float)(w, packed);
}
void packed_product(const PackedProduct<float>& p) { HWY_DYNAMIC_DISPATCH(product_float)(p); }
void packed_product(const PackedProduct<double>& p) { HWY_DYNAMIC_DISPATCH(product_double)(p); }
}  // namespace hybridnet::kernels
#endif
