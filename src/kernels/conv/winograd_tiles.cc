#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_tiles.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>

#include "hybridnet/threads.h"
#include "kernels/conv/winograd_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr double kTileNs = 20;  // per channel: 36 values in or out
constexpr int64_t kStreamBytes = 16 << 20;

// ---- the one-dimensional transforms: values are `step` apart in input and output

HWY_INLINE V times(V x, float factor) { return hn::Mul(x, hn::Set(D(), factor)); }
HWY_INLINE V plus_times(V sum, V x, float factor) { return hn::MulAdd(x, hn::Set(D(), factor), sum); }

// The polynomials are evaluated at 0, +-a, +-b and infinity with a^2 = 1/2, b^2 = 2: rounding errors are half as large
// as with the usual 0, +-1, +-2.
constexpr float kA = 0.70710678118654752f, kB = 1.4142135623730950f;
constexpr float kA3 = kA / 2, kB3 = kB * 2;  // cubes

// B': 6 -> 6
HWY_INLINE void transform_patch(V d0, V d1, V d2, V d3, V d4, V d5, V out[6]) {
  const V near_even = plus_times(d4, d2, -2.0f), near_odd = times(plus_times(d3, d1, -2.0f), kA);
  const V far_even = plus_times(d4, d2, -0.5f), far_odd = times(plus_times(d3, d1, -0.5f), kB);
  out[0] = plus_times(hn::Add(d0, d4), d2, -2.5f);
  out[1] = hn::Add(near_even, near_odd);
  out[2] = hn::Sub(near_even, near_odd);
  out[3] = hn::Add(far_even, far_odd);
  out[4] = hn::Sub(far_even, far_odd);
  out[5] = plus_times(hn::Add(d1, d5), d3, -2.5f);
}

// A': 6 -> 4
HWY_INLINE void transform_products(V m0, V m1, V m2, V m3, V m4, V m5, V out[4]) {
  const V near_sum = hn::Add(m1, m2), near_gap = hn::Sub(m1, m2), far_sum = hn::Add(m3, m4), far_gap = hn::Sub(m3, m4);
  out[0] = hn::Add(hn::Add(m0, near_sum), far_sum);
  out[1] = plus_times(times(near_gap, kA), far_gap, kB);
  out[2] = plus_times(times(near_sum, 0.5f), far_sum, 2.0f);
  out[3] = plus_times(plus_times(m5, near_gap, kA3), far_gap, kB3);
}

// A: 4 -> 6
HWY_INLINE void transform_tile(V y0, V y1, V y2, V y3, V out[6]) {
  const V near_even = plus_times(y0, y2, 0.5f), near_odd = plus_times(times(y1, kA), y3, kA3);
  const V far_even = plus_times(y0, y2, 2.0f), far_odd = plus_times(times(y1, kB), y3, kB3);
  out[0] = y0;
  out[1] = hn::Add(near_even, near_odd);
  out[2] = hn::Sub(near_even, near_odd);
  out[3] = hn::Add(far_even, far_odd);
  out[4] = hn::Sub(far_even, far_odd);
  out[5] = y3;
}

// G: 3 -> 6
HWY_INLINE void transform_kernel(V g0, V g1, V g2, V out[6]) {
  const V near_even = plus_times(times(g0, -2.0f / 3), g2, -1.0f / 3), near_odd = times(g1, -kB / 3);
  const V far_even = plus_times(times(g0, 1.0f / 6), g2, 1.0f / 3), far_odd = times(g1, kB / 6);
  out[0] = g0;
  out[1] = hn::Add(near_even, near_odd);
  out[2] = hn::Sub(near_even, near_odd);
  out[3] = hn::Add(far_even, far_odd);
  out[4] = hn::Sub(far_even, far_odd);
  out[5] = g2;
}

// G': 6 -> 3
HWY_INLINE void transform_kernel_gradient(V u0, V u1, V u2, V u3, V u4, V u5, V out[3]) {
  const V near_sum = hn::Add(u1, u2), far_sum = hn::Add(u3, u4);
  out[0] = plus_times(plus_times(u0, near_sum, -2.0f / 3), far_sum, 1.0f / 6);
  out[1] = plus_times(times(hn::Sub(u2, u1), kB / 3), hn::Sub(u3, u4), kB / 6);
  out[2] = plus_times(u5, hn::Sub(far_sum, near_sum), 1.0f / 3);
}

// True if a sum of squares contains a number beyond kWinogradTileLimit.
HWY_INLINE bool is_doubtful(V squares) {
  return !hn::AllTrue(D(), hn::Lt(squares, hn::Set(D(), kWinogradTileLimit * kWinogradTileLimit)));
}
// Several threads may call this at once.
void note(uint8_t* flag) { std::atomic_ref(*flag).store(1, std::memory_order_relaxed); }

// ---- tiles

struct TilePlace {
  int64_t n, i, j;
  TilePlace(const WinogradGrid& grid, int64_t tile)
      : n(tile / (grid.down * grid.across)), i(tile / grid.across % grid.down), j(tile % grid.across) {}
};

// Rows or columns [from, to) of a patch are inside the image.
struct InsideImage {
  int64_t from, to;
  InsideImage(int64_t start, int64_t length, int64_t size)
      : from(std::clamp<int64_t>(-start, 0, length)), to(std::clamp<int64_t>(size - start, from, length)) {}
};

void input_tile(const WinogradImage& x, const float* patch, InsideImage rows, InsideImage columns, float* products,
                int64_t stride) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), line = x.width * x.channels;
  const bool whole = rows.from == 0 && rows.to == 6 && columns.from == 0 && columns.to == 6;
  for (int64_t c = 0; c < x.channels; c += lanes) {
    V half[6][6];  // half[s]: column s after the transform of its rows
    for (int64_t s = 0; s < 6; ++s) {
      V p[6];
      const float* from = patch + s * x.channels + c;
      if (whole) {
        for (int64_t r = 0; r < 6; ++r) p[r] = hn::LoadU(d, from + r * line);
      } else {
        const bool column = s >= columns.from && s < columns.to;
        for (int64_t r = 0; r < 6; ++r) {
          p[r] = column && r >= rows.from && r < rows.to ? hn::LoadU(d, from + r * line) : hn::Zero(d);
        }
      }
      transform_patch(p[0], p[1], p[2], p[3], p[4], p[5], half[s]);
    }
    for (int64_t r = 0; r < 6; ++r) {
      V row[6];
      transform_patch(half[0][r], half[1][r], half[2][r], half[3][r], half[4][r], half[5][r], row);
      for (int64_t s = 0; s < 6; ++s) hn::StoreU(row[s], d, products + (r * 6 + s) * stride + c);
    }
  }
}

void input_tiles(const WinogradImage& x, const WinogradGrid& grid, int64_t pad_rows, int64_t pad_columns,
                 const float* data, int64_t begin, int64_t end, float* products, int64_t stride) {
  parallel_for(end - begin, kTileNs * static_cast<double>(x.channels), [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const TilePlace at(grid, begin + t);
      const int64_t row = at.i * kWinogradTile - pad_rows, column = at.j * kWinogradTile - pad_columns;
      const float* patch = data + ((at.n * x.height + row) * x.width + column) * x.channels;
      input_tile(x, patch, InsideImage(row, 6, x.height), InsideImage(column, 6, x.width), products + t * x.channels,
                 stride);
    }
  });
}

void output_tile(const WinogradImage& y, const WinogradEpilogue& epilogue, const float* products, int64_t stride,
                 int64_t rows, int64_t columns, int64_t place, uint8_t* doubtful, float* data) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), line = y.width * y.channels;
  V squares = hn::Zero(d);
  for (int64_t c = 0; c < y.channels; c += lanes) {
    V half[6][4];
    for (int64_t s = 0; s < 6; ++s) {
      V m[6];
      for (int64_t r = 0; r < 6; ++r) m[r] = hn::LoadU(d, products + (r * 6 + s) * stride + c);
      transform_products(m[0], m[1], m[2], m[3], m[4], m[5], half[s]);
    }
    const V bias = epilogue.bias ? hn::LoadU(d, epilogue.bias + c) : hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) {
      V row[4];
      transform_products(half[0][r], half[1][r], half[2][r], half[3][r], half[4][r], half[5][r], row);
      for (int64_t s = 0; s < columns; ++s) {
        const int64_t at = place + r * line + s * y.channels + c;
        squares = hn::MulAdd(row[s], row[s], squares);
        V v = hn::Add(row[s], bias);
        if (epilogue.addend) v = hn::Add(v, hn::LoadU(d, epilogue.addend + at));
        if (epilogue.relu) v = hn::IfThenElse(hn::Le(v, hn::Zero(d)), hn::Zero(d), v);  // NaN stays
        hn::StoreU(v, d, data + at);
      }
    }
  }
  if (doubtful && is_doubtful(squares)) note(doubtful);
}

void output_tiles(const WinogradImage& y, const WinogradGrid& grid, const WinogradEpilogue& epilogue,
                  const float* products, int64_t stride, int64_t begin, int64_t end, float* data) {
  parallel_for(end - begin, kTileNs * static_cast<double>(y.channels), [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const TilePlace at(grid, begin + t);
      const int64_t row = at.i * kWinogradTile, column = at.j * kWinogradTile;
      output_tile(y, epilogue, products + t * y.channels, stride, std::min(kWinogradTile, y.height - row),
                  std::min(kWinogradTile, y.width - column), ((at.n * y.height + row) * y.width + column) * y.channels,
                  epilogue.doubtful ? epilogue.doubtful + at.n : nullptr, data);
    }
  });
}

void gradient_tile(const WinogradImage& y, const float* tile, int64_t rows, int64_t columns, float* products,
                   int64_t stride) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), line = y.width * y.channels;
  for (int64_t c = 0; c < y.channels; c += lanes) {
    V half[4][6];
    for (int64_t s = 0; s < 4; ++s) {
      V p[4];
      for (int64_t r = 0; r < 4; ++r) {
        p[r] = s < columns && r < rows ? hn::LoadU(d, tile + r * line + s * y.channels + c) : hn::Zero(d);
      }
      transform_tile(p[0], p[1], p[2], p[3], half[s]);
    }
    for (int64_t r = 0; r < 6; ++r) {
      V row[6];
      transform_tile(half[0][r], half[1][r], half[2][r], half[3][r], row);
      for (int64_t s = 0; s < 6; ++s) hn::StoreU(row[s], d, products + (r * 6 + s) * stride + c);
    }
  }
}

void gradient_tiles(const WinogradImage& y, const WinogradGrid& grid, const float* dy, int64_t begin, int64_t end,
                    float* products, int64_t stride) {
  parallel_for(end - begin, kTileNs * static_cast<double>(y.channels), [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      const TilePlace at(grid, begin + t);
      const int64_t row = at.i * kWinogradTile, column = at.j * kWinogradTile;
      gradient_tile(y, dy + ((at.n * y.height + row) * y.width + column) * y.channels,
                    std::min(kWinogradTile, y.height - row), std::min(kWinogradTile, y.width - column),
                    products + t * y.channels, stride);
    }
  });
}

// ---- weights

// The position of w[o][c] for row i and column j of the transformed matrices.
struct WeightOrder {
  int64_t rows, columns, row_step, column_step;
  explicit WeightOrder(const WinogradWeights& w)
      : rows(w.backward ? w.outputs : w.inputs),
        columns(w.backward ? w.inputs : w.outputs),
        row_step(w.backward ? w.inputs * 9 : 9),
        column_step(w.backward ? 9 : w.inputs * 9) {}
};

void weight_rows(const WeightOrder& order, bool rotated, const float* weights, int64_t begin, int64_t end,
                 float* transformed) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), stride = order.rows * order.columns;
  HWY_ALIGN float kernel[9][16];
  // Matrices larger than the caches are written to memory directly: fetching the lines first would double the traffic.
  const bool streams = kWinogradProducts * stride * static_cast<int64_t>(sizeof(float)) > kStreamBytes &&
                       reinterpret_cast<uintptr_t>(transformed) % 64 == 0;
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < order.columns; j += lanes) {
      const float* from = weights + i * order.row_step + j * order.column_step;
      for (int64_t l = 0; l < lanes; ++l) {
        for (int64_t k = 0; k < 9; ++k) kernel[k][l] = from[l * order.column_step + (rotated ? 8 - k : k)];
      }
      V half[3][6];
      for (int64_t s = 0; s < 3; ++s) {
        transform_kernel(hn::Load(d, kernel[s]), hn::Load(d, kernel[3 + s]), hn::Load(d, kernel[6 + s]), half[s]);
      }
      float* to = transformed + i * order.columns + j;
      for (int64_t r = 0; r < 6; ++r) {
        V row[6];
        transform_kernel(half[0][r], half[1][r], half[2][r], row);
        for (int64_t s = 0; s < 6; ++s) {
          float* place = to + (r * 6 + s) * stride;
          streams ? hn::Stream(row[s], d, place) : hn::StoreU(row[s], d, place);
        }
      }
    }
  }
  if (streams) hwy::FlushStream();
}

void transform_weights(const WinogradWeights& w, const float* weights, float* transformed) {
  const WeightOrder order(w);
  parallel_for(order.rows, 20.0 * static_cast<double>(order.columns),
               [&](int64_t begin, int64_t end) { weight_rows(order, w.backward, weights, begin, end, transformed); });
}

void weight_gradient_rows(const WinogradWeights& w, const float* products, int64_t begin, int64_t end, float* gradient,
                          uint8_t* doubtful) {
  const D d;
  V squares = hn::Zero(d);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), stride = w.inputs * w.outputs;
  HWY_ALIGN float kernel[9][16];
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t j = 0; j < w.outputs; j += lanes) {
      const float* from = products + i * w.outputs + j;
      V half[6][3];
      for (int64_t s = 0; s < 6; ++s) {
        V u[6];
        for (int64_t r = 0; r < 6; ++r) u[r] = hn::LoadU(d, from + (r * 6 + s) * stride);
        transform_kernel_gradient(u[0], u[1], u[2], u[3], u[4], u[5], half[s]);
      }
      for (int64_t r = 0; r < 3; ++r) {
        V row[3];
        transform_kernel_gradient(half[0][r], half[1][r], half[2][r], half[3][r], half[4][r], half[5][r], row);
        for (int64_t s = 0; s < 3; ++s) {
          squares = hn::MulAdd(row[s], row[s], squares);
          hn::Store(row[s], d, kernel[r * 3 + s]);
        }
      }
      for (int64_t l = 0; l < lanes; ++l) {
        float* to = gradient + ((j + l) * w.inputs + i) * 9;
        for (int64_t k = 0; k < 9; ++k) to[k] = kernel[k][l];
      }
    }
  }
  if (is_doubtful(squares)) note(doubtful);
}

bool transform_weights_gradient(const WinogradWeights& w, const float* products, float* gradient) {
  uint8_t doubtful = 0;
  parallel_for(w.inputs, 20.0 * static_cast<double>(w.outputs),
               [&](int64_t begin, int64_t end) { weight_gradient_rows(w, products, begin, end, gradient, &doubtful); });
  return doubtful == 0;
}

void channel_totals(const WinogradImage& y, const float* data, float* sums) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), pixels = y.batch * y.height * y.width;
  parallel_for(y.channels / lanes, 0.3 * static_cast<double>(pixels * lanes), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const float* from = data + block * lanes;
      V even = hn::Zero(d), odd = hn::Zero(d);
      int64_t p = 0;
      for (; p + 2 <= pixels; p += 2) {
        even = hn::Add(even, hn::LoadU(d, from + p * y.channels));
        odd = hn::Add(odd, hn::LoadU(d, from + (p + 1) * y.channels));
      }
      if (p < pixels) even = hn::Add(even, hn::LoadU(d, from + p * y.channels));
      hn::StoreU(hn::Add(even, odd), d, sums + block * lanes);
    }
  });
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(input_tiles);
HWY_EXPORT(output_tiles);
HWY_EXPORT(gradient_tiles);
HWY_EXPORT(transform_weights);
HWY_EXPORT(transform_weights_gradient);
HWY_EXPORT(channel_totals);
}  // namespace

void winograd_input(const WinogradImage& x, const WinogradGrid& grid, int64_t pad_rows, int64_t pad_columns,
                    const float* data, int64_t begin, int64_t end, float* products, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(input_tiles)(x, grid, pad_rows, pad_columns, data, begin, end, products, stride);
}
void winograd_output(const WinogradImage& y, const WinogradGrid& grid, const WinogradEpilogue& epilogue,
                     const float* products, int64_t stride, int64_t begin, int64_t end, float* data) {
  HWY_DYNAMIC_DISPATCH(output_tiles)(y, grid, epilogue, products, stride, begin, end, data);
}
void winograd_output_gradient(const WinogradImage& y, const WinogradGrid& grid, const float* dy, int64_t begin,
                              int64_t end, float* products, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(gradient_tiles)(y, grid, dy, begin, end, products, stride);
}
void winograd_weights(const WinogradWeights& w, const float* weights, float* transformed) {
  HWY_DYNAMIC_DISPATCH(transform_weights)(w, weights, transformed);
}
bool winograd_weights_gradient(const WinogradWeights& w, const float* products, float* gradient) {
  return HWY_DYNAMIC_DISPATCH(transform_weights_gradient)(w, products, gradient);
}
void winograd_bias_gradient(const WinogradImage& y, const float* dy, float* gradient) {
  HWY_DYNAMIC_DISPATCH(channel_totals)(y, dy, gradient);
}

}  // namespace hybridnet::kernels
#endif
