// The arithmetic of LSTM and GRU cells on vectors of hidden units. Included once per SIMD target, hence the toggled
// guard.
#if defined(HYBRIDNET_CELL_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_CELL_MATH_H_
#undef HYBRIDNET_CELL_MATH_H_
#else
#define HYBRIDNET_CELL_MATH_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "kernels/elementwise/vector_math.h"
#include "kernels/rnn/rnn_cells.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V clipped(D d, V c, const CellClip& clip) {
  const V low = constant(d, clip.low), high = constant(d, clip.high);
  const V inside = hn::IfThenElse(hn::Gt(c, high), high, hn::IfThenElse(hn::Lt(c, low), low, c));
  return clip.nan ? hn::IfThenElse(hn::Eq(c, c), inside, low) : inside;
}

// Computes units j to j + lanes of one example. `gates`, `c_prev`, `c` and `h` are that example's rows; pre_i, pre_f,
// pre_g and pre_o its pre-activations. `gates` receives the activations unless it is null.
template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE void lstm_cell(D d, int64_t j, int64_t hidden, V pre_i, V pre_f, V pre_g, V pre_o, const CellClip& clip,
                          T* gates, const T* c_prev, T* c, T* h) {
  const V i = sigmoid(d, pre_i), f = sigmoid(d, pre_f), g = tanh(d, pre_g), o = sigmoid(d, pre_o);
  V cell = hn::MulAdd(f, hn::LoadU(d, c_prev + j), hn::Mul(i, g));
  if (clip.on) cell = clipped(d, cell, clip);
  if (gates) {
    hn::StoreU(i, d, gates + j);
    hn::StoreU(f, d, gates + hidden + j);
    hn::StoreU(g, d, gates + 2 * hidden + j);
    hn::StoreU(o, d, gates + 3 * hidden + j);
  }
  hn::StoreU(cell, d, c + j);
  hn::StoreU(hn::Mul(o, tanh(d, cell)), d, h + j);
}

// The same for GRU; rec_r, rec_z and rec_n: the product of the state and the recurrent weights.
template <class D, class V, typename T = hn::TFromD<D>>
HWY_INLINE void gru_cell(D d, int64_t j, int64_t hidden, V rec_r, V rec_z, V rec_n, const T* bias, T* gates,
                         T* recurrent_n, const T* h_prev, T* h) {
  const V r = sigmoid(d, hn::Add(hn::LoadU(d, gates + j), rec_r));
  const V z = sigmoid(d, hn::Add(hn::LoadU(d, gates + hidden + j), rec_z));
  const V rec = hn::Add(rec_n, hn::LoadU(d, bias + j));
  const V n = tanh(d, hn::MulAdd(r, rec, hn::LoadU(d, gates + 2 * hidden + j)));
  hn::StoreU(r, d, gates + j);
  hn::StoreU(z, d, gates + hidden + j);
  hn::StoreU(n, d, gates + 2 * hidden + j);
  hn::StoreU(rec, d, recurrent_n + j);
  hn::StoreU(hn::MulAdd(z, hn::Sub(hn::LoadU(d, h_prev + j), n), n), d, h + j);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
