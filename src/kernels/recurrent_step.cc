#include "kernels/recurrent_step.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent_step.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "hybridnet/threads.h"
#include "kernels/cell_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Hidden units are taken in blocks: whole vectors, then vectors of half the length each as long as units remain. Within
// a block the packed weights hold, for each element of the state, one vector for each gate. A block of units [j, j +
// width) begins at packed + gates * j * recurrent.

// f(d, j, width) for the blocks of [begin, end), where begin is a whole number of the longest vectors.
template <typename T, size_t kLanes, class F>
HWY_INLINE void for_blocks(int64_t begin, int64_t end, const F& f) {
  const hn::CappedTag<T, kLanes> d;
  const int64_t width = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = begin;
  for (; j + width <= end; j += width) f(d, j, width);
  if constexpr (kLanes > 1) {
    if (j < end) for_blocks<T, kLanes / 2>(j, end, f);
  }
}
template <typename T>
constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(T);

template <typename T>
void pack(int gates, int64_t hidden, int64_t recurrent, const T* weights, T* packed) {
  const hn::ScalableTag<T> longest;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(longest)), vectors = (hidden + lanes - 1) / lanes;
  parallel_for(vectors, 0.6 * static_cast<double>(lanes * gates * recurrent), [&](int64_t begin, int64_t end) {
    for_blocks<T, kMaxLanes<T>>(begin * lanes, std::min(end * lanes, hidden), [&](auto, int64_t j, int64_t width) {
      T* block = packed + gates * j * recurrent;
      // Tiles of the weights that stay in the cache while they are turned.
      constexpr int64_t kTile = 16;
      for (int64_t first = 0; first < recurrent; first += kTile) {
        const int64_t last = std::min(first + kTile, recurrent);
        for (int64_t g = 0; g < gates; ++g)
          for (int64_t l = 0; l < width; ++l) {
            const T* row = weights + (g * hidden + j + l) * recurrent;
            for (int64_t k = first; k < last; ++k) block[(k * gates + g) * width + l] = row[k];
          }
      }
    });
  });
}

template <typename T>
struct LstmCell {
  static constexpr int kGates = 4;
  const LstmStep<T>& s;
  template <class D>
  HWY_INLINE hn::Vec<D> start(D d, int gate, int64_t j) const {
    return s.bias ? hn::LoadU(d, s.bias + gate * s.hidden + j) : hn::Zero(d);
  }
  template <class D, class V>
  HWY_INLINE void operator()(D d, int64_t row, int64_t j, const V* product) const {
    const int64_t H = s.hidden;
    T* gates = s.gates + row * 4 * H;
    lstm_cell(d, j, H, hn::Add(product[0], hn::LoadU(d, gates + j)), hn::Add(product[1], hn::LoadU(d, gates + H + j)),
              hn::Add(product[2], hn::LoadU(d, gates + 2 * H + j)),
              hn::Add(product[3], hn::LoadU(d, gates + 3 * H + j)), s.clip, gates, s.c_prev + row * H, s.c + row * H,
              s.h + row * H);
  }
};

template <typename T>
struct GruCell {
  static constexpr int kGates = 3;
  const GruStep<T>& s;
  template <class D>
  HWY_INLINE hn::Vec<D> start(D d, int, int64_t) const {
    return hn::Zero(d);
  }
  template <class D, class V>
  HWY_INLINE void operator()(D d, int64_t row, int64_t j, const V* product) const {
    const int64_t H = s.hidden;
    gru_cell(d, j, H, product[0], product[1], product[2], s.bias, s.gates + row * 3 * H, s.recurrent_n + row * H,
             s.h_prev + row * H, s.h + row * H);
  }
};

// kRows examples and one block of units: kRows * kGates sums in registers.
template <int kRows, class D, class Cell, typename T = hn::TFromD<D>>
HWY_INLINE void step_tile(D d, const T* block, int64_t recurrent, const T* state, const Cell& cell, int64_t row,
                          int64_t j) {
  constexpr int kGates = Cell::kGates;
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kGates];
  for (int r = 0; r < kRows; ++r)
    for (int g = 0; g < kGates; ++g) sums[r][g] = cell.start(d, g, j);
  const T* from = state + row * recurrent;
  for (int64_t k = 0; k < recurrent; ++k) {
    V weight[kGates];
    for (int g = 0; g < kGates; ++g) weight[g] = hn::LoadU(d, block + g * lanes);
    block += kGates * lanes;
    for (int r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, from[r * recurrent + k]);
      for (int g = 0; g < kGates; ++g) sums[r][g] = hn::MulAdd(x, weight[g], sums[r][g]);
    }
  }
  for (int r = 0; r < kRows; ++r) cell(d, row + r, j, sums[r]);
}

// Rows that fit the registers: 32 of them with AVX-512, 16 with other targets.
constexpr int kMaxRows = HWY_TARGET <= HWY_AVX3 ? 6 : 2;

template <typename T, class Cell>
void step(const T* packed, int64_t recurrent, const T* state, int64_t rows, int64_t hidden, const Cell& cell) {
  const hn::ScalableTag<T> longest;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(longest)), vectors = (hidden + lanes - 1) / lanes;
  const int64_t work = 1 + rows * recurrent * Cell::kGates * lanes;  // products of one block
  parallel_for(vectors, 0.08 * static_cast<double>(work), [&](int64_t begin, int64_t end) {
    for_blocks<T, kMaxLanes<T>>(begin * lanes, std::min(end * lanes, hidden), [&](auto d, int64_t j, int64_t) HWY_ATTR {
      const T* block = packed + Cell::kGates * j * recurrent;
      int64_t row = 0;
      for (; row + kMaxRows <= rows; row += kMaxRows) step_tile<kMaxRows>(d, block, recurrent, state, cell, row, j);
      for (; row + 2 <= rows; row += 2) step_tile<2>(d, block, recurrent, state, cell, row, j);
      for (; row < rows; ++row) step_tile<1>(d, block, recurrent, state, cell, row, j);
    });
  });
}

void pack_float(int g, int64_t h, int64_t r, const float* w, float* p) { pack(g, h, r, w, p); }
void pack_double(int g, int64_t h, int64_t r, const double* w, double* p) { pack(g, h, r, w, p); }
void lstm_float(const float* p, int64_t r, const float* state, const LstmStep<float>& s) {
  step(p, r, state, s.rows, s.hidden, LstmCell<float>{s});
}
void lstm_double(const double* p, int64_t r, const double* state, const LstmStep<double>& s) {
  step(p, r, state, s.rows, s.hidden, LstmCell<double>{s});
}
void gru_float(const float* p, int64_t r, const float* state, const GruStep<float>& s) {
  step(p, r, state, s.rows, s.hidden, GruCell<float>{s});
}
void gru_double(const double* p, int64_t r, const double* state, const GruStep<double>& s) {
  step(p, r, state, s.rows, s.hidden, GruCell<double>{s});
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(lstm_float);
HWY_EXPORT(lstm_double);
HWY_EXPORT(gru_float);
HWY_EXPORT(gru_double);

void pack_recurrent(int gates, int64_t hidden, int64_t recurrent, const float* weights, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_float)(gates, hidden, recurrent, weights, packed);
}
void pack_recurrent(int gates, int64_t hidden, int64_t recurrent, const double* weights, double* packed) {
  HWY_DYNAMIC_DISPATCH(pack_double)(gates, hidden, recurrent, weights, packed);
}
void lstm_step(const float* packed, int64_t recurrent, const float* state, const LstmStep<float>& s) {
  HWY_DYNAMIC_DISPATCH(lstm_float)(packed, recurrent, state, s);
}
void lstm_step(const double* packed, int64_t recurrent, const double* state, const LstmStep<double>& s) {
  HWY_DYNAMIC_DISPATCH(lstm_double)(packed, recurrent, state, s);
}
void gru_step(const float* packed, int64_t recurrent, const float* state, const GruStep<float>& s) {
  HWY_DYNAMIC_DISPATCH(gru_float)(packed, recurrent, state, s);
}
void gru_step(const double* packed, int64_t recurrent, const double* state, const GruStep<double>& s) {
  HWY_DYNAMIC_DISPATCH(gru_double)(packed, recurrent, state, s);
}

}  // namespace hybridnet::kernels
#endif
