#include "kernels/rnn/rnn_cells.h"

#include "device/stream.h"
#include "kernels/rnn/device_rnn.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rnn/rnn_cells.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/rnn/cell_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Calls f(d, i) for whole vectors at i, then for one element at a time.
template <typename T, class F>
HWY_INLINE void for_vectors(int64_t n, const F& f) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(d, i);
  for (; i < n; ++i) f(one, i);
}

template <typename T>
void lstm_rows(const LstmStep<T>& s) {
  const int64_t H = s.hidden;
  for (int64_t row = 0; row < s.rows; ++row) {
    T *gates = s.gates + row * 4 * H, *c = s.c + row * H, *h = s.h + row * H;
    const T* c_prev = s.c_prev + row * H;
    for_vectors<T>(H, [&](auto d, int64_t j) HWY_ATTR {
      lstm_cell(d, j, H, hn::LoadU(d, gates + j), hn::LoadU(d, gates + H + j), hn::LoadU(d, gates + 2 * H + j),
                hn::LoadU(d, gates + 3 * H + j), s.clip, gates, c_prev, c, h);
    });
  }
}

template <typename T>
void lstm_backward_rows(const LstmBackwardStep<T>& s) {
  const int64_t H = s.hidden;
  for (int64_t row = 0; row < s.rows; ++row) {
    const T *gates = s.gates + row * 4 * H, *c = s.c + row * H, *c_prev = s.c_prev + row * H, *dh = s.dh + row * H;
    T *dgates = s.dgates + row * 4 * H, *dc = s.dc + row * H;
    for_vectors<T>(H, [&](auto d, int64_t j) HWY_ATTR {
      const auto one = constant(d, 1.0);
      const auto i = hn::LoadU(d, gates + j), f = hn::LoadU(d, gates + H + j);
      const auto g = hn::LoadU(d, gates + 2 * H + j), o = hn::LoadU(d, gates + 3 * H + j);
      const auto cell = hn::LoadU(d, c + j), t = tanh(d, cell), up = hn::LoadU(d, dh + j);
      // Through h: dh o (1 - tanh(c)^2), plus the gradient from the next step.
      auto down = hn::MulAdd(hn::Mul(up, o), hn::NegMulAdd(t, t, one), hn::LoadU(d, dc + j));
      if (s.clip.on) {  // a cell at its limit has gradient 0
        const auto inside = hn::And(hn::Gt(cell, constant(d, s.clip.low)), hn::Lt(cell, constant(d, s.clip.high)));
        down = hn::IfThenElseZero(inside, down);
      }
      const auto slope = [&](auto gate) HWY_ATTR { return hn::Mul(gate, hn::Sub(one, gate)); };
      hn::StoreU(hn::Mul(hn::Mul(down, g), slope(i)), d, dgates + j);
      hn::StoreU(hn::Mul(hn::Mul(down, hn::LoadU(d, c_prev + j)), slope(f)), d, dgates + H + j);
      hn::StoreU(hn::Mul(hn::Mul(down, i), hn::NegMulAdd(g, g, one)), d, dgates + 2 * H + j);
      hn::StoreU(hn::Mul(hn::Mul(up, t), slope(o)), d, dgates + 3 * H + j);
      hn::StoreU(hn::Mul(down, f), d, dc + j);
    });
  }
}

template <typename T>
void hidden_rows(int64_t rows, int64_t H, const T* gates, const T* c, T* h) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *o = gates + row * 4 * H + 3 * H, *cell = c + row * H;
    T* out = h + row * H;
    for_vectors<T>(H, [&](auto d, int64_t j) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, o + j), tanh(d, hn::LoadU(d, cell + j))), d, out + j);
    });
  }
}

template <typename T>
void gru_rows(const GruStep<T>& s) {
  const int64_t H = s.hidden;
  for (int64_t row = 0; row < s.rows; ++row) {
    T *gates = s.gates + row * 3 * H, *h = s.h + row * H, *recurrent_n = s.recurrent_n + row * H;
    const T *recurrent = s.recurrent + row * 3 * H, *h_prev = s.h_prev + row * H;
    for_vectors<T>(H, [&](auto d, int64_t j) HWY_ATTR {
      gru_cell(d, j, H, hn::LoadU(d, recurrent + j), hn::LoadU(d, recurrent + H + j),
               hn::LoadU(d, recurrent + 2 * H + j), s.bias, gates, recurrent_n, h_prev, h);
    });
  }
}

template <typename T>
void gru_backward_rows(const GruBackwardStep<T>& s) {
  const int64_t H = s.hidden;
  for (int64_t row = 0; row < s.rows; ++row) {
    const T *gates = s.gates + row * 3 * H, *recurrent_n = s.recurrent_n + row * H, *h_prev = s.h_prev + row * H;
    T *dgates = s.dgates + row * 3 * H, *drecurrent = s.drecurrent + row * 3 * H, *dh = s.dh + row * H;
    for_vectors<T>(H, [&](auto d, int64_t j) HWY_ATTR {
      const auto one = constant(d, 1.0);
      const auto r = hn::LoadU(d, gates + j), z = hn::LoadU(d, gates + H + j), n = hn::LoadU(d, gates + 2 * H + j);
      const auto up = hn::LoadU(d, dh + j);
      const auto slope = [&](auto gate) HWY_ATTR { return hn::Mul(gate, hn::Sub(one, gate)); };
      const auto dn = hn::Mul(hn::Mul(up, hn::Sub(one, z)), hn::NegMulAdd(n, n, one));
      const auto dr = hn::Mul(hn::Mul(dn, hn::LoadU(d, recurrent_n + j)), slope(r));
      const auto dz = hn::Mul(hn::Mul(up, hn::Sub(hn::LoadU(d, h_prev + j), n)), slope(z));
      hn::StoreU(dr, d, dgates + j);
      hn::StoreU(dz, d, dgates + H + j);
      hn::StoreU(dn, d, dgates + 2 * H + j);
      hn::StoreU(dr, d, drecurrent + j);
      hn::StoreU(dz, d, drecurrent + H + j);
      hn::StoreU(hn::Mul(dn, r), d, drecurrent + 2 * H + j);
      hn::StoreU(hn::Mul(up, z), d, dh + j);
    });
  }
}

template <typename T>
void plain(bool relu, int64_t n, const T* gates, T* h) {
  for_vectors<T>(n, [&](auto d, int64_t j) HWY_ATTR {
    const auto x = hn::LoadU(d, gates + j);
    hn::StoreU(relu ? hn::IfThenElse(hn::Le(x, hn::Zero(d)), hn::Zero(d), x) : tanh(d, x), d, h + j);
  });
}

template <typename T>
void plain_backward(bool relu, int64_t n, const T* h, const T* dh, T* dgates) {
  for_vectors<T>(n, [&](auto d, int64_t j) HWY_ATTR {
    const auto y = hn::LoadU(d, h + j), up = hn::LoadU(d, dh + j);
    const auto through_relu = hn::IfThenElse(hn::IsNaN(y), y, hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), up));
    hn::StoreU(relu ? through_relu : hn::Mul(up, hn::NegMulAdd(y, y, constant(d, 1.0))), d, dgates + j);
  });
}

void lstm_float(const LstmStep<float>& s) { lstm_rows(s); }
void lstm_double(const LstmStep<double>& s) { lstm_rows(s); }
void lstm_backward_float(const LstmBackwardStep<float>& s) { lstm_backward_rows(s); }
void lstm_backward_double(const LstmBackwardStep<double>& s) { lstm_backward_rows(s); }
void hidden_float(int64_t n, int64_t H, const float* g, const float* c, float* h) { hidden_rows(n, H, g, c, h); }
void hidden_double(int64_t n, int64_t H, const double* g, const double* c, double* h) { hidden_rows(n, H, g, c, h); }
void gru_float(const GruStep<float>& s) { gru_rows(s); }
void gru_double(const GruStep<double>& s) { gru_rows(s); }
void gru_backward_float(const GruBackwardStep<float>& s) { gru_backward_rows(s); }
void gru_backward_double(const GruBackwardStep<double>& s) { gru_backward_rows(s); }
void plain_float(bool relu, int64_t n, const float* g, float* h) { plain(relu, n, g, h); }
void plain_double(bool relu, int64_t n, const double* g, double* h) { plain(relu, n, g, h); }
void plain_backward_float(bool r, int64_t n, const float* h, const float* dh, float* dg) {
  plain_backward(r, n, h, dh, dg);
}
void plain_backward_double(bool r, int64_t n, const double* h, const double* dh, double* dg) {
  plain_backward(r, n, h, dh, dg);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(lstm_float);
HWY_EXPORT(lstm_double);
HWY_EXPORT(lstm_backward_float);
HWY_EXPORT(lstm_backward_double);
HWY_EXPORT(hidden_float);
HWY_EXPORT(hidden_double);
HWY_EXPORT(gru_float);
HWY_EXPORT(gru_double);
HWY_EXPORT(gru_backward_float);
HWY_EXPORT(gru_backward_double);
HWY_EXPORT(plain_float);
HWY_EXPORT(plain_double);
HWY_EXPORT(plain_backward_float);
HWY_EXPORT(plain_backward_double);

void lstm_step(const LstmStep<float>& s) {
  if (device::current()) return on_device::lstm_step(s);
  HWY_DYNAMIC_DISPATCH(lstm_float)(s);
}
void lstm_step(const LstmStep<double>& s) {
  if (device::current()) return on_device::lstm_step(s);
  HWY_DYNAMIC_DISPATCH(lstm_double)(s);
}
void lstm_backward_step(const LstmBackwardStep<float>& s) {
  if (device::current()) return on_device::lstm_backward_step(s);
  HWY_DYNAMIC_DISPATCH(lstm_backward_float)(s);
}
void lstm_backward_step(const LstmBackwardStep<double>& s) {
  if (device::current()) return on_device::lstm_backward_step(s);
  HWY_DYNAMIC_DISPATCH(lstm_backward_double)(s);
}
void lstm_hidden(int64_t rows, int64_t hidden, const float* gates, const float* c, float* h) {
  if (device::current()) return on_device::lstm_hidden(rows, hidden, gates, c, h);
  HWY_DYNAMIC_DISPATCH(hidden_float)(rows, hidden, gates, c, h);
}
void lstm_hidden(int64_t rows, int64_t hidden, const double* gates, const double* c, double* h) {
  if (device::current()) return on_device::lstm_hidden(rows, hidden, gates, c, h);
  HWY_DYNAMIC_DISPATCH(hidden_double)(rows, hidden, gates, c, h);
}
void gru_step(const GruStep<float>& s) {
  if (device::current()) return on_device::gru_step(s);
  HWY_DYNAMIC_DISPATCH(gru_float)(s);
}
void gru_step(const GruStep<double>& s) {
  if (device::current()) return on_device::gru_step(s);
  HWY_DYNAMIC_DISPATCH(gru_double)(s);
}
void gru_backward_step(const GruBackwardStep<float>& s) {
  if (device::current()) return on_device::gru_backward_step(s);
  HWY_DYNAMIC_DISPATCH(gru_backward_float)(s);
}
void gru_backward_step(const GruBackwardStep<double>& s) {
  if (device::current()) return on_device::gru_backward_step(s);
  HWY_DYNAMIC_DISPATCH(gru_backward_double)(s);
}
void plain_step(bool relu, int64_t n, const float* gates, float* h) {
  if (device::current()) return on_device::plain_step(relu, n, gates, h);
  HWY_DYNAMIC_DISPATCH(plain_float)(relu, n, gates, h);
}
void plain_step(bool relu, int64_t n, const double* gates, double* h) {
  if (device::current()) return on_device::plain_step(relu, n, gates, h);
  HWY_DYNAMIC_DISPATCH(plain_double)(relu, n, gates, h);
}
void plain_backward_step(bool relu, int64_t n, const float* h, const float* dh, float* dgates) {
  if (device::current()) return on_device::plain_backward_step(relu, n, h, dh, dgates);
  HWY_DYNAMIC_DISPATCH(plain_backward_float)(relu, n, h, dh, dgates);
}
void plain_backward_step(bool relu, int64_t n, const double* h, const double* dh, double* dgates) {
  if (device::current()) return on_device::plain_backward_step(relu, n, h, dh, dgates);
  HWY_DYNAMIC_DISPATCH(plain_backward_double)(relu, n, h, dh, dgates);
}

}  // namespace hybridnet::kernels
#endif
