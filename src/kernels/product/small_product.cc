#include "kernels/product/small_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/small_product.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/product/product_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace {

// All pointers and steps that a tile needs, by value: the compiler must assume that a store changes the target of a
// reference.
struct Operands {
  const float* a;
  int64_t a_row, a_step;  // elements between rows of op(A), and between elements of a row
  const float* b;
  float* c;
  int64_t b_row, c_row, depth;
  float alpha, beta;
};

// Computes kRows rows of kVectors vectors of columns; all pointers point to the first of them. Not inlined: inside a
// loop compilers run out of registers.
template <int kRows, int kVectors, class D>
HWY_NOINLINE void tile(D d, const Operands o) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  const float *a = o.a, *b = o.b;
  for (int64_t k = 0; k < o.depth; ++k, a += o.a_step, b += o.b_row) {
    hn::Vec<D> right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const auto left = hn::Set(d, a[r * o.a_row]);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
    }
  }
  const auto alpha = hn::Set(d, o.alpha), beta = hn::Set(d, o.beta);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* const to = o.c + r * o.c_row + v * lanes;
      auto product = hn::Mul(alpha, sums[r][v]);
      if (o.beta != 0) product = hn::MulAdd(beta, hn::LoadU(d, to), product);
      hn::StoreU(product, d, to);
    }
}

template <int kVectors, class D>
HWY_INLINE void columns(D d, int64_t rows, Operands at, int64_t column) {
  at.b += column;
  at.c += column;
  for_tiles<tile_rows(2)>(rows, [&](int64_t row, auto count) HWY_ATTR {
    Operands o = at;
    o.a += row * o.a_row;
    o.c += row * o.c_row;
    tile<decltype(count)::value, kVectors>(d, o);
  });
}

void run(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  const Operands all{a, s.transpose_a ? 1 : s.lda, s.transpose_a ? s.lda : 1, b, c, s.ldb, s.ldc, s.k, alpha, beta};
  for_wide_blocks<float, 2>(0, s.n, [&](auto d, auto vectors, int64_t column) HWY_ATTR {
    columns<decltype(vectors)::value>(d, s.m, all, column);
  });
}

}  // namespace
}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(run);
}
void small_product(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  HWY_DYNAMIC_DISPATCH(run)(s, alpha, a, b, beta, c);
}
}  // namespace hybridnet::kernels
#endif
