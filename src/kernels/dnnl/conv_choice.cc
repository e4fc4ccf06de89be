#include "kernels/dnnl/conv_choice.h"

#include <algorithm>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/winograd.h"
#include "kernels/conv/winograd_tiles.h"
#include "kernels/dnnl/dense_choice.h"
#include "kernels/isa.h"

namespace hybridnet::onednn {
namespace {

using kernels::ConvGeometry;

// True if F(4x4, 3x3) is possible, and likely to be faster than the direct sum and than F(2x2, 3x3).
bool pays_4x4(const ConvGeometry& g, ConvKind kind) {
  if (g.spatial != 2 || !g.channels_last || g.weights_last || g.groups != 1) return false;
  for (const size_t k : {size_t{1}, size_t{2}}) {
    if (g.kernel[k] != 3 || g.stride[k] != 1 || g.dilate[k] != 1 || g.pad[k] > 2) return false;
  }
  if (!kernels::winograd_channels(g.c) || !kernels::winograd_channels(g.o)) return false;
  // Measured: narrow layers spend their time in the transforms, wide ones in reading 36 matrices instead of 9 or 16.
  // The gradient of the weights has no such rival.
  if (std::min(g.c, g.o) < 32) return false;
  const auto tiles_of = [](int64_t size) { return (size + 3) / 4; };
  const int64_t tiles = g.n * tiles_of(g.out[1]) * tiles_of(g.out[2]), pairs = g.c * g.o;
  const double waste = static_cast<double>(tiles * 16) / static_cast<double>(g.n * g.out[1] * g.out[2]);
  if (waste > 1.8) return false;
  if (kind == ConvKind::kBackwardWeights) return tiles >= (pairs <= 256 * 256 ? 12 : 24);
  return pairs <= 128 * 160 ? tiles >= 12 : pairs <= 256 * 256 && tiles >= 96;
}

bool pays_2x2(const ConvGeometry& g, const Convolution::Options& options) {
  if (options.kind == ConvKind::kBackwardWeights) {
    // Transforming the result costs about as much as 50 tiles, and its sums must fit into memory beside the tensors.
    constexpr int64_t kMaxWeights = 1 << 20;
    return !options.bias && g.n * g.out_size() >= 512 && g.c * g.o <= kMaxWeights && kernels::winograd_applies(g);
  }
  // Weights that change are transformed each time, which pays for large images and batches only.
  if (!options.remember && g.n * g.out_size() < 256) return false;
  return kernels::winograd_applies(options.kind == ConvKind::kForward ? g : kernels::mirrored(g));
}

bool is_one(const std::array<int64_t, 3>& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size == 1; });
}

// Convolutions of single pixels. The time of the packed product relative to oneDNN's convolution, on an AMD EPYC with
// AVX2, on one core and on two, with weights read from memory, like in a network:
//
//    pixels, channels, filters | one core | two cores
//        49,      256,     256 |   0.81   |   0.82
//        49,      960,     320 |   0.82   |   0.84
//        49,     1024,    1024 |   0.87   |   0.85
//        49,     2048,     512 |   0.95   |   0.96
//       196,      384,      64 |   0.95   |   0.86
//       196,      512,     512 |   0.95   |   0.92
//       196,     1024,     256 |   0.95   |   0.89
//       400,      512,     512 |   0.96   |   0.94
//       784,      256,     256 |   1.02   |   1.04
//       784,      512,     128 |   0.99   |   1.08
//      3136,       64,     256 |   1.06   |   1.14
//
// With AVX-512, MobileNet takes 0.98 and ResNet-50 0.99 of the time with up to 256 pixels; with more there is no gain.
bool pays_dense(const ConvGeometry& g, const Convolution::Options& options) {
  const int64_t pixels = g.n * g.out_size(), most = kernels::isa_in_force().level == kernels::Isa::kAvx2 ? 512 : 256;
  if (options.kind != ConvKind::kForward || !g.channels_last || g.groups != 1 || pixels > most) return false;
  if (!is_one(g.kernel) || !is_one(g.stride) || g.in != g.out) return false;
  return choose_dense({.rows = pixels,
                       .features = g.c,
                       .hidden = g.o,
                       .activation = options.activation.kind != ActivationKind::kNone,
                       .frozen = options.remember}) == DenseAlgorithm::kPackedProduct;
}

bool pays_depthwise(const ConvGeometry& g, const Convolution::Options& options) {
  return options.kind == ConvKind::kForward && bounds_of(options.activation) && kernels::depthwise_pays(g);
}

}  // namespace

ConvAlgorithm choose_convolution(const ConvQuestion& q) {
  const DType dtype = q.options.dtype;
  if (dtype == DType::kFloat64 || q.geometry.empty()) return ConvAlgorithm::kReference;
  if (dtype != DType::kFloat32) return ConvAlgorithm::kDirect;
  if (pays_dense(q.geometry, q.options)) return ConvAlgorithm::kDense;
  if (pays_depthwise(q.geometry, q.options)) return ConvAlgorithm::kDepthwise;
  const ActivationKind activation = q.options.activation.kind;
  const bool end_fits_4x4 = activation == ActivationKind::kNone || activation == ActivationKind::kRelu;
  if (q.may_round_more && end_fits_4x4 && pays_4x4(q.geometry, q.options.kind)) return ConvAlgorithm::kWinograd4x4;
  return pays_2x2(q.geometry, q.options) ? ConvAlgorithm::kWinograd2x2 : ConvAlgorithm::kDirect;
}

}  // namespace hybridnet::onednn
