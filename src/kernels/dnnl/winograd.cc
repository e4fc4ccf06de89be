#include "kernels/dnnl/winograd.h"

#include <algorithm>
#include <cstring>

#include "storage/temporary.h"

namespace hybridnet::onednn {
namespace {

using kernels::ConvGeometry;
using kernels::kWinogradProducts;

constexpr int64_t kChunkBytes = 768 << 10;           // a core's chunk: it stays in the second-level cache
constexpr int64_t kSharedChunkBytes = 4 << 20;       // a chunk that several cores share, or with large weights
constexpr int64_t kSmallMatricesBytes = 2560 << 10;  // weights that each core may read for itself
constexpr int64_t kMinTiles = 16;                    // in a chunk: with fewer rows, reading the weights dominates

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Winograd::Winograd(const ConvGeometry& g, const Convolution::Options& options) : g_(g), options_(options) {
  const kernels::WinogradImage x{g.n, g.in[1], g.in[2], g.c}, y{g.n, g.out[1], g.out[2], g.o};
  const bool backward = options.kind == ConvKind::kBackwardData;
  in_ = backward ? y : x;
  out_ = backward ? x : y;
  pad_rows_ = backward ? 2 - g.pad[1] : g.pad[1];
  pad_columns_ = backward ? 2 - g.pad[2] : g.pad[2];
  grid_ = {g.n, divided_up(out_.height, 4), divided_up(out_.width, 4)};
  weights_ = {g.o, g.c, backward};
  choose_chunks();
  if (!options.remember || options.kind == ConvKind::kBackwardWeights) return;
  kept_ = std::make_unique<kernels::PackedWeights>(
      "winograd 4x4 " + std::to_string(g.o) + " " + std::to_string(g.c) + (backward ? " mirrored" : ""),
      matrices_bytes());
}

void Winograd::choose_chunks() {
  const bool weights = options_.kind == ConvKind::kBackwardWeights;
  const int64_t tiles = grid_.tiles(), channels = in_.channels + out_.channels;
  const int64_t tile_bytes = kWinogradProducts * channels * static_cast<int64_t>(sizeof(float));
  const double flops =
      2.0 * kWinogradProducts * static_cast<double>(tiles * in_.channels) * static_cast<double>(out_.channels);
  const int64_t cores = std::min<int64_t>(current_cores(), worthwhile_cores(flops));
  const bool small = matrices_bytes() <= kSmallMatricesBytes;
  lanes_ = !weights && small && tiles >= 2 * cores * kMinTiles ? cores : 1;
  int64_t room = small && (lanes_ > 1 || cores == 1) ? kChunkBytes : kSharedChunkBytes;
  if (weights) room = std::max(room, matrices_bytes());  // every chunk reads and writes all sums again
  chunk_tiles_ = std::clamp(room / tile_bytes, std::min(kMinTiles, tiles), tiles);
  if (lanes_ > 1) chunk_tiles_ = std::min(chunk_tiles_, divided_up(tiles, lanes_));
  chunks_ = divided_up(tiles, chunk_tiles_);
  chunk_tiles_ = divided_up(tiles, chunks_);
  Matmul::Options product;
  product.batch = kWinogradProducts;
  product.m = weights ? in_.channels : chunk_tiles_;
  product.n = out_.channels;
  product.k = weights ? chunk_tiles_ : in_.channels;
  product.transpose_a = weights;
  const CoreScope scope(lanes_ > 1 ? 1 : static_cast<int>(cores));
  product_ = std::make_unique<Matmul>(product);
  if (!weights || chunks_ == 1) return;
  product.accumulate = true;
  further_product_ = std::make_unique<Matmul>(product);
}

int64_t Winograd::matrices_bytes() const {
  return aligned(kWinogradProducts * in_.channels * out_.channels * static_cast<int64_t>(sizeof(float)));
}

int64_t Winograd::lane_bytes() const {
  const int64_t values = kWinogradProducts * chunk_tiles_ * static_cast<int64_t>(sizeof(float));
  const int64_t product =
      std::max(product_->workspace_bytes(), further_product_ ? further_product_->workspace_bytes() : 0);
  return aligned(values * in_.channels) + aligned(values * out_.channels) + aligned(product);
}

Winograd::Lane Winograd::lane(char* workspace, int64_t i) const {
  const int64_t values = kWinogradProducts * chunk_tiles_ * static_cast<int64_t>(sizeof(float));
  char* at = workspace + i * lane_bytes();
  char* to = at + aligned(values * in_.channels);
  return {reinterpret_cast<float*>(at), reinterpret_cast<float*>(to), to + aligned(values * out_.channels)};
}

int64_t Winograd::workspace_bytes() const { return lanes_ * lane_bytes() + (kept_ ? 0 : matrices_bytes()); }

void Winograd::run(const Convolution::Tensors& t) {
  char* workspace = static_cast<char*>(t.workspace);
  if (options_.kind == ConvKind::kBackwardWeights) return run_weights(t, workspace);
  run_images(t, workspace);
}

void Winograd::run_images(const Convolution::Tensors& t, char* workspace) {
  const auto transform = [&](void* to) {
    kernels::winograd_weights(weights_, t.b.as<float>(), static_cast<float*>(to));
  };
  kernels::PackedWeights::Use kept;
  const float* matrices;
  if (kept_) {
    kept = kept_->get(t.b, transform);
    matrices = static_cast<const float*>(kept->data());
  } else {
    void* const fresh = workspace + lanes_ * lane_bytes();
    transform(fresh);
    matrices = static_cast<const float*>(fresh);
  }
  Temporary<uint8_t> doubtful(static_cast<size_t>(in_.batch));
  if (lanes_ == 1) {
    for (int64_t chunk = 0; chunk < chunks_; ++chunk)
      run_chunk(t, matrices, chunk, lane(workspace, 0), doubtful.data());
  } else {
    parallel_for(lanes_, 1, [&](int64_t begin, int64_t end) {
      const CoreScope scope(1);
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t chunk = i; chunk < chunks_; chunk += lanes_) {
          run_chunk(t, matrices, chunk, lane(workspace, i), doubtful.data());
        }
      }
    });
  }
  convolve_marked(g_, options_, t, doubtful);
}

void Winograd::run_chunk(const Convolution::Tensors& t, const float* matrices, int64_t chunk, const Lane& l,
                         uint8_t* doubtful) {
  const int64_t begin = chunk * chunk_tiles_, end = std::min(begin + chunk_tiles_, grid_.tiles());
  const int64_t in_stride = chunk_tiles_ * in_.channels, out_stride = chunk_tiles_ * out_.channels;
  kernels::winograd_input(in_, grid_, pad_rows_, pad_columns_, static_cast<const float*>(t.a), begin, end, l.from,
                          in_stride);
  product_->run(l.from, {const_cast<float*>(matrices)}, nullptr, l.to, l.product);
  const kernels::WinogradEpilogue epilogue{static_cast<const float*>(t.c), static_cast<const float*>(t.d),
                                           options_.activation.kind == ActivationKind::kRelu, doubtful};
  kernels::winograd_output(out_, grid_, epilogue, l.to, out_stride, begin, end, static_cast<float*>(t.out0));
}

void Winograd::run_weights(const Convolution::Tensors& t, char* workspace) {
  const Lane l = lane(workspace, 0);
  auto* sums = reinterpret_cast<float*>(workspace + lane_bytes());
  auto* bias = static_cast<float*>(t.out1);
  const int64_t channels = out_.channels, in_stride = chunk_tiles_ * in_.channels, out_stride = chunk_tiles_ * channels;
  if (bias) kernels::winograd_bias_gradient(out_, t.b.as<float>(), bias);
  for (int64_t chunk = 0; chunk < chunks_; ++chunk) {
    const int64_t begin = chunk * chunk_tiles_, end = std::min(begin + chunk_tiles_, grid_.tiles()),
                  count = end - begin;
    kernels::winograd_input(in_, grid_, pad_rows_, pad_columns_, static_cast<const float*>(t.a), begin, end, l.from,
                            in_stride);
    kernels::winograd_output_gradient(out_, grid_, t.b.as<float>(), begin, end, l.to, out_stride);
    for (int64_t p = 0; p < kWinogradProducts && count < chunk_tiles_; ++p) {  // missing tiles count as zero
      std::fill_n(l.from + p * in_stride + count * in_.channels, (chunk_tiles_ - count) * in_.channels, 0.0f);
      std::fill_n(l.to + p * out_stride + count * channels, (chunk_tiles_ - count) * channels, 0.0f);
    }
    Matmul& product = chunk == 0 ? *product_ : *further_product_;
    product.run(l.from, {l.to}, nullptr, sums, l.product);
  }
  if (!kernels::winograd_weights_gradient(weights_, sums, static_cast<float*>(t.out0)))
    convolve_weights(g_, options_, t);
}

}  // namespace hybridnet::onednn
