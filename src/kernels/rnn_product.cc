#include "kernels/rnn_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rnn_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/isa.h"
#include "kernels/rnn_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Columns are taken in blocks of kVectors whole vectors; what remains, in vectors of falling length. A block that
// begins at column j begins at packed + j * depth. It consists of parts of part_of(its vectors) vectors for all of the
// depth, one part behind the other.
constexpr int kVectors = 4;

// f(d, constant, j) for the blocks of [begin, end); the constant is the block's number of vectors.
template <typename T, class F>
HWY_INLINE void for_column_blocks(int64_t begin, int64_t end, const F& f) {
  const hn::ScalableTag<T> longest;
  const int64_t wide = kVectors * static_cast<int64_t>(hn::Lanes(longest));
  int64_t j = begin;
  for (; j + wide <= end; j += wide) f(longest, std::integral_constant<int, kVectors>{}, j);
  for_blocks<T, kMaxLanes<T>>(
      j, end, [&](auto d, int64_t at, int64_t) HWY_ATTR { f(d, std::integral_constant<int, 1>{}, at); });
}

template <typename T>
int64_t wide_block() {
  return kVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
int64_t blocks_of(int64_t columns, int64_t wide) { return (columns + wide - 1) / wide; }

template <typename T>
void pack_weights(int64_t depth, int64_t columns, const T* weights, T* packed) {
  const int64_t wide = wide_block<T>();
  parallel_for(blocks_of(columns, wide), 0.3 * static_cast<double>(wide * depth), [&](int64_t begin, int64_t end) {
    for_column_blocks<T>(begin * wide, std::min(end * wide, columns), [&](auto d, auto vectors, int64_t j) HWY_ATTR {
      const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
      constexpr int kWidth = decltype(vectors)::value, kPart = part_of(kWidth);
      T* to = packed + j * depth;
      for (int64_t first = j; first < j + kWidth * lanes; first += kPart * lanes) {
        for (int64_t k = 0; k < depth; ++k) {
          for (int v = 0; v < kPart; ++v, to += lanes)
            hn::StoreU(hn::LoadU(d, weights + k * columns + first + v * lanes), d, to);
        }
      }
    });
  });
}

// Columns j and on of `row` and those behind it. Not inlined, for the reason given at add_tile of recurrent_step.cc.
template <int kRows, int kWidth, int kPart, class D, typename T>
HWY_NOINLINE void product_tile(D d, const PackedProduct<T>& p, int64_t row, int64_t j) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), at = row * p.columns + j;
  hn::Vec<D> sums[kRows][kWidth];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v)
      sums[r][v] = p.addend ? hn::LoadU(d, p.addend + at + r * p.columns + v * lanes) : hn::Zero(d);
  add_products<kRows, kWidth, kPart>(d, p.packed + j * p.depth, p.depth, p.rows + row * p.depth, p.depth, sums);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kWidth; ++v) hn::StoreU(sums[r][v], d, p.out + at + r * p.columns + v * lanes);
}

template <typename T>
void product(const PackedProduct<T>& p) {
  const int64_t wide = wide_block<T>(), blocks = blocks_of(p.columns, wide);
  const double ns = 0.02 * static_cast<double>(1 + p.count * p.depth * wide);
  parallel_for(blocks, ns, [&](int64_t begin, int64_t end) {
    for_column_blocks<T>(begin * wide, std::min(end * wide, p.columns), [&](auto d, auto vectors, int64_t j) HWY_ATTR {
      constexpr int kWidth = decltype(vectors)::value;
      const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
      for_part_tiles<kWidth>(p.count, [&](int64_t row, auto rows, int first, auto width) HWY_ATTR {
        product_tile<decltype(rows)::value, decltype(width)::value, part_of(kWidth)>(d, p, row, j + first * lanes);
      });
    });
  });
}

void pack_float(int64_t k, int64_t n, const float* w, float* p) { pack_weights(k, n, w, p); }
void pack_double(int64_t k, int64_t n, const double* w, double* p) { pack_weights(k, n, w, p); }
void product_float(const PackedProduct<float>& p) { product(p); }
void product_double(const PackedProduct<double>& p) { product(p); }

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(product_float);
HWY_EXPORT(product_double);

bool packed_products_pay() { return isa_in_force().level == Isa::kAvx2; }

void pack_columns(int64_t depth, int64_t columns, const float* weights, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_float)(depth, columns, weights, packed);
}
void pack_columns(int64_t depth, int64_t columns, const double* weights, double* packed) {
  HWY_DYNAMIC_DISPATCH(pack_double)(depth, columns, weights, packed);
}
void packed_product(const PackedProduct<float>& p) { HWY_DYNAMIC_DISPATCH(product_float)(p); }
void packed_product(const PackedProduct<double>& p) { HWY_DYNAMIC_DISPATCH(product_double)(p); }

}  // namespace hybridnet::kernels
#endif
