#include "kernels/rnn/recurrent_step.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rnn/recurrent_step.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "hybridnet/threads.h"
#include "kernels/memory/transpose_tile.h"
#include "kernels/product/product_tile.h"
#include "kernels/rnn/cell_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Hidden units are divided into blocks of whole vectors, then of vectors of decreasing length. A block of units [j, j +
// width) begins at packed + gates * j * recurrent. It consists of consecutive parts; a part contains, for each element
// of the state, one vector for each of its gates.
//
// A tile multiplies one part, so that AVX2's registers hold the sums of six rows. Its sums go through memory that stays
// in the nearest cache, and the cells of a block are computed once all its sums are there.

// Calls move(weights, packed weights, pitch, rows, columns) for all weights, in tiles that stay in the cache while they
// are transposed: a gate's weights of some units are (rows, columns) with row stride `recurrent`, the packed ones
// (columns, rows) with row stride `pitch`.
template <typename T, typename W, typename P, class Move>
void for_weights(int gates, int64_t hidden, int64_t recurrent, W* weights, P* packed, const Move& move) {
  constexpr int64_t kTile = 64;
  const hn::ScalableTag<T> longest;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(longest)), vectors = (hidden + lanes - 1) / lanes;
  const int64_t part_gates = part_of(gates);
  parallel_for(vectors, 0.3 * static_cast<double>(lanes * gates * recurrent), [&](int64_t begin, int64_t end) {
    for_blocks<T, kMaxLanes<T>>(begin * lanes, std::min(end * lanes, hidden), [&](auto, int64_t j, int64_t width) {
      P* block = packed + gates * j * recurrent;
      const int64_t pitch = part_gates * width;
      for (int64_t k = 0; k < recurrent; k += kTile)
        for (int64_t g = 0; g < gates; ++g)
          move(weights + (g * hidden + j) * recurrent + k,
               block + g / part_gates * part_gates * recurrent * width + g % part_gates * width + k * pitch, pitch,
               width, std::min(kTile, recurrent - k));
    });
  });
}

template <typename T>
void pack(int gates, int64_t hidden, int64_t recurrent, const T* weights, T* packed) {
  for_weights<T>(gates, hidden, recurrent, weights, packed,
                 [&](const T* from, T* to, int64_t pitch, int64_t rows, int64_t columns) {
                   transpose(from, recurrent, rows, columns, to, pitch);
                 });
}

template <typename T>
void unpack(int gates, int64_t hidden, int64_t recurrent, const T* packed, T* weights) {
  for_weights<T>(gates, hidden, recurrent, weights, packed,
                 [&](T* to, const T* from, int64_t pitch, int64_t rows, int64_t columns) {
                   transpose(from, pitch, columns, rows, to, recurrent);
                 });
}

template <typename T>
struct LstmCell {
  static constexpr int kGates = 4;
  const LstmStep<T>& s;
  const StepInput<T>& input;
  template <class D>
  HWY_INLINE hn::Vec<D> start(D d, int gate, int64_t j) const {
    return s.bias ? hn::LoadU(d, s.bias + gate * s.hidden + j) : hn::Zero(d);
  }
  // The product with the state is added to the same sums.
  template <class D>
  HWY_INLINE void take_input(D, int64_t, int64_t, T*) const {}
  template <class D>
  HWY_INLINE void operator()(D d, int64_t row, int64_t j, const T* sums) const {
    const int64_t H = s.hidden;
    T* gates = s.gates ? s.gates + row * 4 * H : nullptr;
    const auto sum = [&](int g) HWY_ATTR {
      const auto products = hn::LoadU(d, sums + g * static_cast<int64_t>(hn::Lanes(d)));
      return input.packed ? products : hn::Add(products, hn::LoadU(d, gates + g * H + j));
    };
    lstm_cell(d, j, H, sum(0), sum(1), sum(2), sum(3), s.clip, gates, s.c_prev + row * H, s.c + row * H, s.h + row * H);
  }
};

template <typename T>
struct GruCell {
  static constexpr int kGates = 3;
  const GruStep<T>& s;
  const StepInput<T>& input;
  template <class D>
  HWY_INLINE hn::Vec<D> start(D d, int gate, int64_t j) const {
    return input.packed ? hn::LoadU(d, s.input_bias + gate * s.hidden + j) : hn::Zero(d);
  }
  // n needs the two products separately.
  template <class D>
  HWY_INLINE void take_input(D d, int64_t row, int64_t j, T* sums) const {
    for (int g = 0; g < 3; ++g, sums += hn::Lanes(d)) {
      hn::StoreU(hn::LoadU(d, sums), d, s.gates + (row * 3 + g) * s.hidden + j);
      hn::StoreU(hn::Zero(d), d, sums);
    }
  }
  template <class D>
  HWY_INLINE void operator()(D d, int64_t row, int64_t j, const T* sums) const {
    const int64_t H = s.hidden, lanes = static_cast<int64_t>(hn::Lanes(d));
    gru_cell(d, j, H, hn::LoadU(d, sums), hn::LoadU(d, sums + lanes), hn::LoadU(d, sums + 2 * lanes), s.bias,
             s.gates + row * 3 * H, s.recurrent_n + row * H, s.h_prev + row * H, s.h + row * H);
  }
};

// The rows of a block whose sums are stored at once.
constexpr int64_t kMaxRows = 64;

// sums (kRows, kVectors vectors), `pitch` apart, += rows (kRows, depth) * a block's weights, kPart vectors per part.
// Not inlined: next to other loops compilers run out of registers here and read the weights once for each row.
template <int kRows, int kVectors, int kPart, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void add_tile(D d, const T* weights, int64_t depth, const T* rows, T* sums, int64_t pitch, Fetch fetch) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> s[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) s[r][v] = hn::LoadU(d, sums + r * pitch + v * lanes);
  add_products<kRows, kVectors, kPart>(d, weights, depth, rows, depth, 0, depth, fetch, s);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(s[r][v], d, sums + r * pitch + v * lanes);
}

// sums (count, kGates vectors) += rows (count, depth) * one block's weights. next: the weights to read after these, for
// the same depth, or null if prefetching them does not pay.
template <int kGates, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_block(D d, const T* weights, int64_t depth, const T* rows, int64_t count, const T* next, T* sums) {
  constexpr int kPart = part_of(kGates);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), pitch = kGates * lanes, part = kPart * lanes * depth;
  for_part_tiles<kGates>(count, [&](int64_t row, auto tile, int gate, auto gates) HWY_ATTR {
    constexpr int kRows = decltype(tile)::value, kTileGates = decltype(gates)::value;
    const T* const block = weights + gate * lanes * depth;
    const T* const then = gate + kTileGates < kGates ? block + part : next;
    const Fetch fetch = next ? share_of(then, part, depth, row, kRows, count) : Fetch{};
    add_tile<kRows, kTileGates, kPart>(d, block, depth, rows + row * depth, sums + row * pitch + gate * lanes, pitch,
                                       fetch);
  });
}

// Computes units [j, j + lanes) of `rows` examples from `row` on, at most kMaxRows.
template <class D, class Cell, typename T = hn::TFromD<D>>
HWY_INLINE void step_block(D d, const T* packed, int64_t recurrent, const T* state, const StepInput<T>& input,
                           const Cell& cell, int64_t hidden, int64_t row, int64_t rows, int64_t j) {
  constexpr int kGates = Cell::kGates;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), pitch = kGates * lanes;
  HWY_ALIGN T sums[kMaxRows * kGates * kMaxLanes<T>];
  for (int64_t r = 0; r < rows; ++r)
    for (int g = 0; g < kGates; ++g) hn::StoreU(cell.start(d, g, j), d, sums + r * pitch + g * lanes);
  const T* const block = packed + kGates * j * recurrent;
  const bool afar = fetching_pays<T>(kGates * hidden * (recurrent + input.size), rows);
  const T* after = block + kGates * lanes * recurrent;
  if (input.packed) {
    const T* const input_block = input.packed + kGates * j * input.size;
    after = input_block + kGates * lanes * input.size;
    add_block<kGates>(d, input_block, input.size, input.data + row * input.size, rows, afar ? block : nullptr, sums);
    for (int64_t r = 0; r < rows; ++r) cell.take_input(d, row + r, j, sums + r * pitch);
  }
  add_block<kGates>(d, block, recurrent, state + row * recurrent, rows, afar ? after : nullptr, sums);
  for (int64_t r = 0; r < rows; ++r) cell(d, row + r, j, sums + r * pitch);
}

template <typename T, class Cell>
void step(const T* packed, int64_t recurrent, const T* state, int64_t rows, int64_t hidden, const StepInput<T>& input,
          const Cell& cell) {
  const hn::ScalableTag<T> longest;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(longest)), vectors = (hidden + lanes - 1) / lanes;
  const int64_t work = 1 + rows * (recurrent + input.size) * Cell::kGates * lanes;  // multiplications for one block
  parallel_for(vectors, 0.08 * static_cast<double>(work), [&](int64_t begin, int64_t end) {
    for_blocks<T, kMaxLanes<T>>(begin * lanes, std::min(end * lanes, hidden), [&](auto d, int64_t j, int64_t) HWY_ATTR {
      for (int64_t row = 0; row < rows; row += kMaxRows)
        step_block(d, packed, recurrent, state, input, cell, hidden, row, std::min(kMaxRows, rows - row), j);
    });
  });
}

void pack_float(int g, int64_t h, int64_t r, const float* w, float* p) { pack(g, h, r, w, p); }
void pack_double(int g, int64_t h, int64_t r, const double* w, double* p) { pack(g, h, r, w, p); }
void unpack_float(int g, int64_t h, int64_t r, const float* p, float* w) { unpack(g, h, r, p, w); }
void unpack_double(int g, int64_t h, int64_t r, const double* p, double* w) { unpack(g, h, r, p, w); }
void lstm_float(const float* p, int64_t r, const float* state, const LstmStep<float>& s, const StepInput<float>& x) {
  step(p, r, state, s.rows, s.hidden, x, LstmCell<float>{s, x});
}
void lstm_double(const double* p, int64_t r, const double* state, const LstmStep<double>& s,
                 const StepInput<double>& x) {
  step(p, r, state, s.rows, s.hidden, x, LstmCell<double>{s, x});
}
void gru_float(const float* p, int64_t r, const float* state, const GruStep<float>& s, const StepInput<float>& x) {
  step(p, r, state, s.rows, s.hidden, x, GruCell<float>{s, x});
}
void gru_double(const double* p, int64_t r, const double* state, const GruStep<double>& s, const StepInput<double>& x) {
  step(p, r, state, s.rows, s.hidden, x, GruCell<double>{s, x});
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(pack_float);
HWY_EXPORT(pack_double);
HWY_EXPORT(unpack_float);
HWY_EXPORT(unpack_double);
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
void unpack_recurrent(int gates, int64_t hidden, int64_t recurrent, const float* packed, float* weights) {
  HWY_DYNAMIC_DISPATCH(unpack_float)(gates, hidden, recurrent, packed, weights);
}
void unpack_recurrent(int gates, int64_t hidden, int64_t recurrent, const double* packed, double* weights) {
  HWY_DYNAMIC_DISPATCH(unpack_double)(gates, hidden, recurrent, packed, weights);
}
void lstm_step(const float* packed, int64_t recurrent, const float* state, const LstmStep<float>& s,
               const StepInput<float>& input) {
  HWY_DYNAMIC_DISPATCH(lstm_float)(packed, recurrent, state, s, input);
}
void lstm_step(const double* packed, int64_t recurrent, const double* state, const LstmStep<double>& s,
               const StepInput<double>& input) {
  HWY_DYNAMIC_DISPATCH(lstm_double)(packed, recurrent, state, s, input);
}
void gru_step(const float* packed, int64_t recurrent, const float* state, const GruStep<float>& s,
              const StepInput<float>& input) {
  HWY_DYNAMIC_DISPATCH(gru_float)(packed, recurrent, state, s, input);
}
void gru_step(const double* packed, int64_t recurrent, const double* state, const GruStep<double>& s,
              const StepInput<double>& input) {
  HWY_DYNAMIC_DISPATCH(gru_double)(packed, recurrent, state, s, input);
}

}  // namespace hybridnet::kernels
#endif
