#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>

#include "hybridnet/threads.h"
#include "kernels/conv/winograd.h"

#ifndef HYBRIDNET_KERNELS_WINOGRAD_TILES
#define HYBRIDNET_KERNELS_WINOGRAD_TILES
namespace hybridnet::kernels {
// Every 2x2 outputs are a tile, computed from 4x4 inputs; tiles are numbered by image, row, column.
struct WinogradTiles {
  static constexpr int64_t kPoints = 16;                // products per tile and pair of channels
  static constexpr int64_t kBlock = 24;                 // tiles whose products one task keeps in its cache
  static constexpr int64_t kGroupFloats = 1536 * 1024;  // transformed inputs in memory at a time
  int64_t down, across, count, group;
  // `channels`: floats of a transformed tile per point.
  WinogradTiles(const ConvGeometry& g, int64_t channels)
      : down((g.out[1] + 1) / 2),
        across((g.out[2] + 1) / 2),
        count(g.n * down * across),
        group(std::min(count, std::max<int64_t>(8 * kBlock, kGroupFloats / (kPoints * channels)))) {}
};
}  // namespace hybridnet::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int64_t kPoints = WinogradTiles::kPoints, kBlock = WinogradTiles::kBlock;
// The micro kernel keeps kRows x kVectors accumulators in registers: AVX-512 has 32 of them, other targets 16.
constexpr int64_t kRows = HWY_TARGET <= HWY_AVX3 ? 6 : 4;
constexpr int64_t kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr int64_t kMaxLanes = 16;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }
HWY_INLINE int64_t panel_width() { return kVectors * lanes(); }

// True if a sum of squares contains a number beyond kWinogradLimit.
HWY_INLINE bool is_doubtful(V squares) {
  return !hn::AllTrue(D(), hn::Lt(squares, hn::Set(D(), kWinogradLimit * kWinogradLimit)));
}
// Several threads may call this at once.
void note(uint8_t* flag) { std::atomic_ref(*flag).store(1, std::memory_order_relaxed); }

// ---- weights: (panel of outputs, point, input channel, output within the panel)
struct Weights {
  const float* data;
  int64_t out_step, in_step, row_step, column_step;
  Weights(const ConvGeometry& g, const float* w, bool of_mirrored) {
    const ConvStrides s = ConvStrides::of(of_mirrored ? g.o : g.c, g.kernel, g.weights_last);
    data = of_mirrored ? w + 2 * s.spatial[1] + 2 * s.spatial[2] : w;
    out_step = of_mirrored ? s.c : s.n;
    in_step = of_mirrored ? s.n : s.c;
    row_step = of_mirrored ? -s.spatial[1] : s.spatial[1];
    column_step = of_mirrored ? -s.spatial[2] : s.spatial[2];
  }
};

// w to G w with G = (1 0 0; 1 1 1; 1 -1 1; 0 0 1), middle rows halved.
HWY_INLINE void transform_three(V a, V b, V c, V* out, int64_t step) {
  const V half = hn::Set(D(), 0.5F), outer = hn::Mul(half, hn::Add(a, c)), inner = hn::Mul(half, b);
  out[0] = a;
  out[step] = hn::Add(outer, inner);
  out[2 * step] = hn::Sub(outer, inner);
  out[3 * step] = c;
}

// Packs one panel and some input channels: `taps` has room for (channels, 9, panel width).
void pack_block(const ConvGeometry& g, const Weights& w, int64_t panel, int64_t first, int64_t channels, float* taps,
                float* packed) {
  const D d;
  const int64_t width = panel_width(), present = std::min(width, g.o - panel * width);
  std::fill_n(taps, channels * 9 * width, 0.0F);
  for (int64_t i = 0; i < present; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* from = w.data + (panel * width + i) * w.out_step + (first + c) * w.in_step;
      float* to = taps + c * 9 * width + i;
      for (int64_t t = 0; t < 9; ++t) to[t * width] = from[t / 3 * w.row_step + t % 3 * w.column_step];
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < width; i += lanes()) {
      V tap[9], half[12], point[16];
      for (int64_t t = 0; t < 9; ++t) tap[t] = hn::LoadU(d, taps + (c * 9 + t) * width + i);
      for (int q = 0; q < 3; ++q) transform_three(tap[q], tap[3 + q], tap[6 + q], half + q, 3);
      for (int r = 0; r < 4; ++r) transform_three(half[3 * r], half[3 * r + 1], half[3 * r + 2], point + 4 * r, 1);
      for (int64_t k = 0; k < kPoints; ++k)
        hn::StoreU(point[k], d, packed + ((panel * kPoints + k) * g.c + first + c) * width + i);
    }
  }
}

void pack_weights(const ConvGeometry& g, const float* data, bool of_mirrored, float* packed) {
  constexpr int64_t kChannels = 8;
  const Weights w(g, data, of_mirrored);
  const int64_t width = panel_width(), panels = (g.o + width - 1) / width, blocks = (g.c + kChannels - 1) / kChannels;
  parallel_for(panels * blocks, 625.0 * static_cast<double>(blocks), [&](int64_t begin, int64_t end) {
    HWY_ALIGN float taps[kChannels * 9 * kVectors * kMaxLanes];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kChannels;
      pack_block(g, w, task / blocks, first, std::min(kChannels, g.c - first), taps, packed);
    }
  });
}

// ---- input: 4x4 pixels d to B^T d B with B^T = (1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1)
HWY_INLINE void transform_four(V& a, V& b, V& c, V& d) {
  const V first = hn::Sub(a, c), second = hn::Add(b, c), third = hn::Sub(c, b), fourth = hn::Sub(b, d);
  a = first;
  b = second;
  c = third;
  d = fourth;
}

void transform_tile(const ConvGeometry& g, const WinogradTiles& t, const float* x, int64_t tile, float* out,
                    int64_t point_step) {
  const D d;
  const int64_t step = lanes();
  const int64_t column = tile % t.across, row = tile / t.across % t.down, n = tile / t.across / t.down;
  const int64_t top = row * 2 - g.pad[1], left = column * 2 - g.pad[2];
  const float* image = x + n * g.in[1] * g.in[2] * g.c;
  const float* pixel[16];
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t r = top + i / 4, q = left + i % 4;
    const bool inside = r >= 0 && r < g.in[1] && q >= 0 && q < g.in[2];
    pixel[i] = inside ? image + (r * g.in[2] + q) * g.c : nullptr;
  }
  for (int64_t c = 0; c < g.c; c += step) {
    V v[16];
    for (int i = 0; i < 16; ++i) v[i] = pixel[i] ? hn::LoadU(d, pixel[i] + c) : hn::Zero(d);
    for (int i = 0; i < 4; ++i) transform_four(v[i], v[4 + i], v[8 + i], v[12 + i]);
    for (int i = 0; i < 16; i += 4) transform_four(v[i], v[i + 1], v[i + 2], v[i + 3]);
    for (int64_t i = 0; i < 16; ++i) hn::StoreU(v[i], d, out + i * point_step + c);
  }
}

// ---- products: rows x (kVectors vectors), over all input channels
template <int64_t kR>
HWY_INLINE void multiply(int64_t channels, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                         float* HWY_RESTRICT out) {
  const D d;
  const int64_t step = lanes(), width = kVectors * step;
  V acc[kR][kVectors];
  for (int64_t r = 0; r < kR; ++r)
    for (int64_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(d);
  for (int64_t c = 0; c < channels; ++c) {
    V right[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + c * width + v * step);
    for (int64_t r = 0; r < kR; ++r) {
      const V left = hn::Set(d, a[r * channels + c]);
      for (int64_t v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
  }
  for (int64_t r = 0; r < kR; ++r)
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(acc[r][v], d, out + r * width + v * step);
}

void multiply_rows(int64_t rows, int64_t channels, const float* a, const float* b, float* out) {
  const int64_t width = panel_width();
  int64_t r = 0;
  for (; r + kRows <= rows; r += kRows) multiply<kRows>(channels, a + r * channels, b, out + r * width);
  a += r * channels;
  out += r * width;
  switch (rows - r) {
    case 1:
      return multiply<1>(channels, a, b, out);
    case 2:
      return multiply<2>(channels, a, b, out);
    case 3:
      return multiply<3>(channels, a, b, out);
    case 4:
      return multiply<4>(channels, a, b, out);
    case 5:
      return multiply<5>(channels, a, b, out);
    default:
      return;
  }
}

// ---- output: m to A^T m A with A^T = (1 1 1 0; 0 1 -1 -1)
HWY_INLINE void finish_four(V a, V b, V c, V d, V& first, V& second) {
  first = hn::Add(hn::Add(a, b), c);
  second = hn::Sub(hn::Sub(b, c), d);
}

// `m`: products of one tile, `point_step` apart for each point; writes channels [first, first + count) of the tile's
// pixels.
void finish_tile(const ConvGeometry& g, const WinogradTiles& t, int64_t tile, const float* m, int64_t point_step,
                 int64_t first, int64_t count, const WinogradEnd& end, float* y) {
  const D d;
  const int64_t column = tile % t.across * 2, row = tile / t.across % t.down * 2, n = tile / t.across / t.down;
  V squares = hn::Zero(d);
  for (int64_t c = 0; c < count; c += lanes()) {
    V v[16], left[4], right[4], out[2][2];
    for (int64_t i = 0; i < 16; ++i) v[i] = hn::LoadU(d, m + i * point_step + c);
    for (int i = 0; i < 4; ++i) finish_four(v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3], left[i], right[i]);
    finish_four(left[0], left[1], left[2], left[3], out[0][0], out[1][0]);
    finish_four(right[0], right[1], right[2], right[3], out[0][1], out[1][1]);
    const V bias = end.bias ? hn::LoadU(d, end.bias + first + c) : hn::Zero(d);
    for (int64_t i = 0; i < 2 && row + i < g.out[1]; ++i) {
      for (int64_t j = 0; j < 2 && column + j < g.out[2]; ++j) {
        const int64_t at = ((n * g.out[1] + row + i) * g.out[2] + column + j) * g.o + first + c;
        squares = hn::MulAdd(out[i][j], out[i][j], squares);
        V value = hn::Add(out[i][j], bias);
        if (end.addend) value = hn::Add(value, hn::LoadU(d, end.addend + at));
        if (end.relu) value = hn::IfThenElse(hn::Le(value, hn::Zero(d)), hn::Zero(d), value);  // NaN stays
        hn::StoreU(value, d, y + at);
      }
    }
  }
  if (end.doubtful && is_doubtful(squares)) note(end.doubtful + n);
}

void forward(const ConvGeometry& g, const float* x, const float* packed, const WinogradEnd& end, float* y,
             void* workspace) {
  const WinogradTiles t(g, g.c);
  const int64_t width = panel_width(), panels = (g.o + width - 1) / width;
  float* const transformed = static_cast<float*>(workspace);  // (point, tile of the group, channel)
  const int64_t point_step = t.group * g.c;
  for (int64_t start = 0; start < t.count; start += t.group) {
    const int64_t tiles = std::min(t.group, t.count - start);
    parallel_for(tiles, 10.0 * static_cast<double>(g.c), [&](int64_t begin, int64_t stop) {
      for (int64_t i = begin; i < stop; ++i) transform_tile(g, t, x, start + i, transformed + i * g.c, point_step);
    });
    const int64_t blocks = (tiles + kBlock - 1) / kBlock;
    parallel_for(blocks * panels, 10.0 * static_cast<double>(g.c * kBlock), [&](int64_t begin, int64_t stop) {
      HWY_ALIGN float products[kPoints * kBlock * kVectors * kMaxLanes];
      for (int64_t task = begin; task < stop; ++task) {
        const int64_t panel = task / blocks, block = task % blocks;
        const int64_t from = tiles * block / blocks, rows = tiles * (block + 1) / blocks - from;
        const float* weights = packed + panel * kPoints * g.c * width;
        for (int64_t k = 0; k < kPoints; ++k) {
          multiply_rows(rows, g.c, transformed + k * point_step + from * g.c, weights + k * g.c * width,
                        products + k * kBlock * width);
        }
        const int64_t first = panel * width, count = std::min(width, g.o - first);
        for (int64_t i = 0; i < rows; ++i)
          finish_tile(g, t, start + from + i, products + i * width, kBlock * width, first, count, end, y);
      }
    });
  }
}

int64_t weight_floats(const ConvGeometry& g) {
  const int64_t width = panel_width();
  return (g.o + width - 1) / width * width * kPoints * g.c;
}

// ---- gradient of the weights: sum over tiles of (B^T d B) (A dy A^T) per point, then G^T . G
HWY_INLINE void spread_two(V a, V b, V* out, int64_t step) {
  out[0] = a;
  out[step] = hn::Add(a, b);
  out[2 * step] = hn::Sub(a, b);
  out[3 * step] = hn::Neg(b);
}

// `stride`: floats per tile of `out`, g.o rounded up to whole panels.
void spread_tile(const ConvGeometry& g, const WinogradTiles& t, const float* dy, int64_t tile, float* out,
                 int64_t stride, int64_t point_step) {
  const D d;
  const int64_t column = tile % t.across * 2, row = tile / t.across % t.down * 2, n = tile / t.across / t.down;
  const float* pixel[4];
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t r = row + i / 2, q = column + i % 2;
    pixel[i] = r < g.out[1] && q < g.out[2] ? dy + ((n * g.out[1] + r) * g.out[2] + q) * g.o : nullptr;
  }
  for (int64_t o = 0; o < stride; o += lanes()) {
    V v[4], half[8], point[16];
    for (int i = 0; i < 4; ++i) v[i] = pixel[i] && o < g.o ? hn::LoadU(d, pixel[i] + o) : hn::Zero(d);
    for (int q = 0; q < 2; ++q) spread_two(v[q], v[2 + q], half + q, 2);
    for (int r = 0; r < 4; ++r) spread_two(half[2 * r], half[2 * r + 1], point + 4 * r, 1);
    for (int64_t k = 0; k < kPoints; ++k) hn::StoreU(point[k], d, out + k * point_step + o);
  }
}

// sums (kR input channels, one panel) += over tiles of a[tile][channel] * b[tile][output].
template <int64_t kR>
HWY_INLINE void accumulate(int64_t tiles, const float* HWY_RESTRICT a, int64_t a_stride, const float* HWY_RESTRICT b,
                           int64_t b_stride, float* HWY_RESTRICT sums) {
  const D d;
  const int64_t step = lanes();
  V acc[kR][kVectors];
  for (int64_t r = 0; r < kR; ++r)
    for (int64_t v = 0; v < kVectors; ++v) acc[r][v] = hn::LoadU(d, sums + r * b_stride + v * step);
  for (int64_t t = 0; t < tiles; ++t) {
    V right[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + t * b_stride + v * step);
    for (int64_t r = 0; r < kR; ++r) {
      const V left = hn::Set(d, a[t * a_stride + r]);
      for (int64_t v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
  }
  for (int64_t r = 0; r < kR; ++r)
    for (int64_t v = 0; v < kVectors; ++v) hn::StoreU(acc[r][v], d, sums + r * b_stride + v * step);
}

void accumulate_channels(int64_t channels, int64_t tiles, const float* a, const float* b, int64_t b_stride,
                         float* sums) {
  int64_t c = 0;
  for (; c + kRows <= channels; c += kRows) accumulate<kRows>(tiles, a + c, channels, b, b_stride, sums + c * b_stride);
  a += c;
  sums += c * b_stride;
  switch (channels - c) {
    case 1:
      return accumulate<1>(tiles, a, channels, b, b_stride, sums);
    case 2:
      return accumulate<2>(tiles, a, channels, b, b_stride, sums);
    case 3:
      return accumulate<3>(tiles, a, channels, b, b_stride, sums);
    case 4:
      return accumulate<4>(tiles, a, channels, b, b_stride, sums);
    case 5:
      return accumulate<5>(tiles, a, channels, b, b_stride, sums);
    default:
      return;
  }
}

// Computes G^T . G for one panel and some input channels; `taps` has room for (channels, 9, panel width).
HWY_INLINE void gather_four(V a, V b, V c, V d, V* out, int64_t step) {
  const V half = hn::Set(D(), 0.5F), sum = hn::Mul(half, hn::Add(b, c));
  out[0] = hn::Add(a, sum);
  out[step] = hn::Mul(half, hn::Sub(b, c));
  out[2 * step] = hn::Add(d, sum);
}

void gather_block(const ConvGeometry& g, const float* sums, int64_t stride, int64_t panel, int64_t first,
                  int64_t channels, float* taps, float* dw, uint8_t* doubtful) {
  const D d;
  V squares = hn::Zero(d);
  const ConvStrides s = ConvStrides::of(g.c, g.kernel, g.weights_last);
  const int64_t width = panel_width(), present = std::min(width, g.o - panel * width);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < width; i += lanes()) {
      V point[16], half[12], tap[9];
      for (int64_t k = 0; k < kPoints; ++k)
        point[k] = hn::LoadU(d, sums + (k * g.c + first + c) * stride + panel * width + i);
      for (int q = 0; q < 4; ++q) gather_four(point[q], point[4 + q], point[8 + q], point[12 + q], half + q, 4);
      for (int r = 0; r < 3; ++r)
        gather_four(half[4 * r], half[4 * r + 1], half[4 * r + 2], half[4 * r + 3], tap + 3 * r, 1);
      for (int64_t t = 0; t < 9; ++t) {
        squares = hn::MulAdd(tap[t], tap[t], squares);
        hn::StoreU(tap[t], d, taps + (c * 9 + t) * width + i);
      }
    }
  }
  if (is_doubtful(squares)) note(doubtful);
  for (int64_t i = 0; i < present; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      float* to = dw + (panel * width + i) * s.n + (first + c) * s.c;
      for (int64_t t = 0; t < 9; ++t) to[t / 3 * s.spatial[1] + t % 3 * s.spatial[2]] = taps[(c * 9 + t) * width + i];
    }
  }
}

// Workspace: transformed x, transformed dy, then the sums (point, input channel, output).
struct GradientSpace {
  int64_t stride, x_floats, dy_floats, sum_floats;
  GradientSpace(const ConvGeometry& g, const WinogradTiles& t)
      : stride((g.o + panel_width() - 1) / panel_width() * panel_width()),
        x_floats(kPoints * t.group * g.c),
        dy_floats(kPoints * t.group * stride),
        sum_floats(kPoints * g.c * stride) {}
  int64_t floats() const { return x_floats + dy_floats + sum_floats; }
};

WinogradTiles gradient_tiles(const ConvGeometry& g) { return WinogradTiles(g, std::max(g.c, g.o)); }

bool backward_weights(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* workspace) {
  constexpr int64_t kTilesAtOnce = 96, kChannels = 8;
  const WinogradTiles t = gradient_tiles(g);
  const GradientSpace space(g, t);
  const int64_t width = panel_width(), panels = space.stride / width;
  float* const from_x = static_cast<float*>(workspace);
  float* const from_dy = from_x + space.x_floats;
  float* const sums = from_dy + space.dy_floats;
  const int64_t x_step = t.group * g.c, dy_step = t.group * space.stride;
  parallel_for(space.sum_floats, 1 << 16,
               [&](int64_t begin, int64_t end) { std::fill(sums + begin, sums + end, 0.0F); });
  for (int64_t start = 0; start < t.count; start += t.group) {
    const int64_t tiles = std::min(t.group, t.count - start);
    parallel_for(tiles, 10.0 * static_cast<double>(g.c), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        transform_tile(g, t, x, start + i, from_x + i * g.c, x_step);
        spread_tile(g, t, dy, start + i, from_dy + i * space.stride, space.stride, dy_step);
      }
    });
    parallel_for(kPoints * panels, 2.0 * static_cast<double>(tiles * g.c), [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t k = task / panels, panel = task % panels;
        for (int64_t i = 0; i < tiles; i += kTilesAtOnce) {
          accumulate_channels(g.c, std::min(kTilesAtOnce, tiles - i), from_x + k * x_step + i * g.c,
                              from_dy + k * dy_step + i * space.stride + panel * width, space.stride,
                              sums + k * g.c * space.stride + panel * width);
        }
      }
    });
  }
  const int64_t blocks = (g.c + kChannels - 1) / kChannels;
  uint8_t doubtful = 0;
  parallel_for(panels * blocks, 625.0 * static_cast<double>(blocks), [&](int64_t begin, int64_t end) {
    HWY_ALIGN float taps[kChannels * 9 * kVectors * kMaxLanes];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kChannels;
      gather_block(g, sums, space.stride, task / blocks, first, std::min(kChannels, g.c - first), taps, dw, &doubtful);
    }
  });
  return doubtful == 0;
}

}  // namespace

// Names for the dispatch.
bool winograd_gradient(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* workspace) {
  return backward_weights(g, x, dy, dw, workspace);
}
int64_t winograd_gradient_floats(const ConvGeometry& g) { return GradientSpace(g, gradient_tiles(g)).floats(); }
void winograd_pack_weights(const ConvGeometry& g, const float* w, bool of_mirrored, float* packed) {
  pack_weights(g, w, of_mirrored, packed);
}
void winograd_run(const ConvGeometry& g, const float* x, const float* packed, const WinogradEnd& end, float* y,
                  void* workspace) {
  forward(g, x, packed, end, y, workspace);
}
int64_t winograd_weight_floats(const ConvGeometry& g) { return weight_floats(g); }

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(winograd_pack_weights);
HWY_EXPORT(winograd_run);
HWY_EXPORT(winograd_weight_floats);
HWY_EXPORT(winograd_gradient);
HWY_EXPORT(winograd_gradient_floats);
}  // namespace

ConvGeometry mirrored(const ConvGeometry& g) {
  ConvGeometry m = g;
  std::swap(m.c, m.o);
  std::swap(m.in, m.out);
  for (size_t i = 0; i < 3; ++i) m.pad[i] = g.kernel[i] - 1 - g.pad[i];
  return m;
}

bool winograd_applies(const ConvGeometry& g) {
  constexpr int64_t kVector = 16;  // lanes of the widest target; narrower ones divide it
  const auto all = [](const std::array<int64_t, 3>& values, int64_t expected) {
    return values[1] == expected && values[2] == expected;
  };
  return g.spatial == 2 && g.groups == 1 && g.channels_last && !g.empty() && all(g.kernel, 3) && all(g.stride, 1) &&
         all(g.dilate, 1) && g.c % kVector == 0 && g.o % kVector == 0 && g.c >= 32 && g.o >= 32 && g.out[1] >= 4 &&
         g.out[2] >= 4 && g.pad[1] >= 0 && g.pad[2] >= 0;
}

int64_t winograd_weight_bytes(const ConvGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(winograd_weight_floats)(g) * static_cast<int64_t>(sizeof(float));
}
void winograd_pack(const ConvGeometry& g, const float* w, bool of_mirrored, float* packed) {
  HWY_DYNAMIC_DISPATCH(winograd_pack_weights)(g, w, of_mirrored, packed);
}
int64_t winograd_workspace_bytes(const ConvGeometry& g) {
  return WinogradTiles::kPoints * WinogradTiles(g, g.c).group * g.c * static_cast<int64_t>(sizeof(float));
}
void winograd_forward(const ConvGeometry& g, const float* x, const float* packed, const WinogradEnd& end, float* y,
                      void* workspace) {
  HWY_DYNAMIC_DISPATCH(winograd_run)(g, x, packed, end, y, workspace);
}

int64_t winograd_backward_weights_workspace_bytes(const ConvGeometry& g) {
  return HWY_DYNAMIC_DISPATCH(winograd_gradient_floats)(g) * static_cast<int64_t>(sizeof(float));
}
bool winograd_backward_weights(const ConvGeometry& g, const float* x, const float* dy, float* dw, void* workspace) {
  return HWY_DYNAMIC_DISPATCH(winograd_gradient)(g, x, dy, dw, workspace);
}

}  // namespace hybridnet::kernels
#endif
