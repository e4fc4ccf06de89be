#include "kernels/conv/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "hybridnet/threads.h"
#include "kernels/isa.h"
#include "kernels/product/product_tile.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

constexpr int64_t kSide = 3;  // width and height of the weights

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// The taps inside an image of this size, for an output whose first tap is at `first`.
Range taps_inside(int64_t first, int64_t size) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, kSide);
  return {begin, std::clamp<int64_t>(size - first, begin, kSide)};
}

// The outputs of a row whose taps are all inside the image.
Range whole_columns(const ConvGeometry& g) {
  const int64_t stride = g.stride[2], pad = g.pad[2], room = g.in[2] - kSide + pad;
  const int64_t end = room < 0 ? 0 : std::min(g.out[2], room / stride + 1);
  return {std::min((pad + stride - 1) / stride, end), end};
}

// One row of outputs.
struct OutputRow {
  const float* packed;
  const float* x;                // the image row of the first tap, which may be outside
  int64_t pixel, line;           // elements from one pixel to the next, and from one row to the next
  int64_t stride, pad, outputs;  // horizontally
  Range taps;                    // the taps inside the image, vertically
  DepthwiseEnd end;              // the addend begins at this row
  float* y;
};

// Channels are processed in blocks of two vectors, then in vectors of decreasing length. The weights of a block that
// begins at channel j begin at packed + 9 * j: tap by tap, the weights of all its channels.
template <class F>
HWY_INLINE void for_channels(int64_t channels, const F& f) {
  for_wide_blocks<float, 2>(0, channels, f);
}

void pack(const ConvGeometry& g, const float* w, float* packed) {
  for_channels(g.c, [&](auto d, auto vectors, int64_t channel) HWY_ATTR {
    const int64_t width = decltype(vectors)::value * static_cast<int64_t>(hn::Lanes(d));
    for (int64_t tap = 0; tap < kSide * kSide; ++tap)
      for (int64_t i = 0; i < width; ++i) *packed++ = w[(channel + i) * kSide * kSide + tap];
  });
}

template <int kOutputs, int kVectors, class D>
HWY_INLINE void begin(D d, const float* bias, hn::Vec<D> (&sums)[kOutputs][kVectors]) {
  for (int v = 0; v < kVectors; ++v) {
    const auto first = bias ? hn::LoadU(d, bias + v * static_cast<int64_t>(hn::Lanes(d))) : hn::Zero(d);
    for (int o = 0; o < kOutputs; ++o) sums[o][v] = first;
  }
}

// y and addend begin at the first output and channel; outputs are `pixel` elements apart.
template <int kOutputs, int kVectors, class D>
HWY_INLINE void store(D d, const float* addend, float low, float high, float* y, int64_t pixel,
                      hn::Vec<D> (&sums)[kOutputs][kVectors]) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (addend) {
    for (int o = 0; o < kOutputs; ++o)
      for (int v = 0; v < kVectors; ++v) sums[o][v] = hn::Add(sums[o][v], hn::LoadU(d, addend + o * pixel + v * lanes));
  }
  const auto least = hn::Set(d, low), most = hn::Set(d, high);
  for (int o = 0; o < kOutputs; ++o)
    for (int v = 0; v < kVectors; ++v) hn::StoreU(bounded(sums[o][v], least, most), d, y + o * pixel + v * lanes);
}

// sums += the taps of one row of the weights. With stride 1 neighboring outputs share their inputs.
template <int kOutputs, int kVectors, class D>
HWY_INLINE void add_taps(D d, const float* x, int64_t pixel, int64_t stride, const float* w,
                         hn::Vec<D> (&sums)[kOutputs][kVectors]) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> weights[kSide][kVectors];
  for (int j = 0; j < kSide; ++j)
    for (int v = 0; v < kVectors; ++v) weights[j][v] = hn::LoadU(d, w + (j * kVectors + v) * lanes);
  if (stride == 1) {
#pragma GCC unroll 8
    for (int column = 0; column < kOutputs + kSide - 1; ++column)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const auto value = hn::LoadU(d, x + column * pixel + v * lanes);
#pragma GCC unroll 3
        for (int j = 0; j < kSide; ++j)
          if (const int o = column - j; o >= 0 && o < kOutputs)
            sums[o][v] = hn::MulAdd(value, weights[j][v], sums[o][v]);
      }
    return;
  }
#pragma GCC unroll 4
  for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 3
    for (int j = 0; j < kSide; ++j)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[o][v] = hn::MulAdd(hn::LoadU(d, x + (o * stride + j) * pixel + v * lanes), weights[j][v], sums[o][v]);
}

// Computes neighboring outputs whose taps are all inside. The channels are the inner loop: a pixel's channels are
// contiguous, and pixels powers of two apart would evict each other from the cache. The row is passed by value: the
// compiler must assume that a store changes the target of a reference.
template <int kOutputs>
HWY_INLINE void whole_outputs(const OutputRow row, int64_t output) {
  const int64_t pixel = row.pixel, line = row.line, stride = row.stride;
  const float* const x = row.x + row.taps.begin * line + (output * stride - row.pad) * pixel;
  for_channels(pixel, [=](auto d, auto vectors, int64_t channel) HWY_ATTR {
    constexpr int kVectors = decltype(vectors)::value;
    const int64_t taps = kSide * kVectors * static_cast<int64_t>(hn::Lanes(d)), at = output * pixel + channel;
    hn::Vec<decltype(d)> sums[kOutputs][kVectors];
    begin(d, row.end.bias ? row.end.bias + channel : nullptr, sums);
    const float* from = x + channel;
    const float* w = row.packed + kSide * kSide * channel + row.taps.begin * taps;
    for (int64_t i = row.taps.size(); i > 0; --i, from += line, w += taps) add_taps(d, from, pixel, stride, w, sums);
    store(d, row.end.addend ? row.end.addend + at : nullptr, row.end.low, row.end.high, row.y + at, pixel, sums);
  });
}

// Computes an output with some taps outside the image.
HWY_INLINE void part_output(const OutputRow row, int64_t output) {
  const int64_t pixel = row.pixel, line = row.line, first = output * row.stride - row.pad;
  const Range columns = taps_inside(first, line / pixel);
  for_channels(pixel, [=](auto d, auto vectors, int64_t channel) HWY_ATTR {
    constexpr int kVectors = decltype(vectors)::value;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), at = output * pixel + channel;
    hn::Vec<decltype(d)> sums[1][kVectors];
    begin(d, row.end.bias ? row.end.bias + channel : nullptr, sums);
    for (int64_t i = row.taps.begin; i < row.taps.end; ++i)
      for (int64_t j = columns.begin; j < columns.end; ++j) {
        const float* const x = row.x + i * line + (first + j) * pixel + channel;
        const float* const w = row.packed + kSide * kSide * channel + (i * kSide + j) * kVectors * lanes;
        for (int v = 0; v < kVectors; ++v)
          sums[0][v] = hn::MulAdd(hn::LoadU(d, x + v * lanes), hn::LoadU(d, w + v * lanes), sums[0][v]);
      }
    store(d, row.end.addend ? row.end.addend + at : nullptr, row.end.low, row.end.high, row.y + at, pixel, sums);
  });
}

void output_row(const OutputRow& row, Range whole) {
  int64_t o = 0;
  for (; o < whole.begin; ++o) part_output(row, o);
  for (; o + 4 <= whole.end; o += 4) whole_outputs<4>(row, o);
  for (; o + 2 <= whole.end; o += 2) whole_outputs<2>(row, o);
  for (; o < whole.end; ++o) whole_outputs<1>(row, o);
  for (; o < row.outputs; ++o) part_output(row, o);
}

void forward(const ConvGeometry& g, const float* x, const float* packed, const DepthwiseEnd& end, float* y) {
  const Range whole = whole_columns(g);
  const int64_t height = g.out[1], size = g.out[2] * g.c;
  parallel_for(g.n * height, 1 + 0.6 * static_cast<double>(size), [&](int64_t begin, int64_t stop) {
    for (int64_t r = begin; r < stop; ++r) {
      const int64_t image = r / height, first = r % height * g.stride[1] - g.pad[1], line = g.in[2] * g.c;
      DepthwiseEnd of_row = end;
      if (end.addend) of_row.addend += r * size;
      output_row({packed, x + (image * g.in[1] + first) * line, g.c, line, g.stride[2], g.pad[2], g.out[2],
                  taps_inside(first, g.in[1]), of_row, y + r * size},
                 whole);
    }
  });
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {

HWY_EXPORT(pack);
HWY_EXPORT(forward);

bool is_depthwise(const ConvGeometry& g) {
  if (g.spatial != 2 || !g.channels_last || g.groups != g.c || g.o != g.c || g.empty()) return false;
  for (const size_t k : {size_t{1}, size_t{2}})
    if (g.kernel[k] != 3 || g.dilate[k] != 1) return false;
  return true;
}

bool depthwise_pays(const ConvGeometry& g) { return isa_in_force().level == Isa::kAvx2 && is_depthwise(g); }

int64_t depthwise_weight_bytes(const ConvGeometry& g) { return 9 * g.c * static_cast<int64_t>(sizeof(float)); }

void depthwise_pack(const ConvGeometry& g, const float* w, float* packed) { HWY_DYNAMIC_DISPATCH(pack)(g, w, packed); }

void depthwise_forward(const ConvGeometry& g, const float* x, const float* packed, const DepthwiseEnd& end, float* y) {
  HWY_DYNAMIC_DISPATCH(forward)(g, x, packed, end, y);
}
}  // namespace hybridnet::kernels
#endif
