// 3x3 convolutions and both of their gradients by Winograd's algorithm: transforms around 36 matrix products.
// Channels-last float32, stride 1, one group. Chunks of tiles pass through all steps while they are in the cache.
#pragma once

#include <memory>

#include "kernels/conv/conv_geometry.h"
#include "kernels/conv/winograd_tiles.h"
#include "kernels/dnnl/convolution.h"
#include "kernels/dnnl/matmul.h"

namespace hybridnet::onednn {

class Winograd {
 public:
  // For convolutions for which choose_convolution() returns kWinograd4x4. options.activation: none or relu. Options and
  // tensors have the meanings of Convolution's.
  Winograd(const kernels::ConvGeometry& g, const Convolution::Options& options);
  int64_t workspace_bytes() const;
  std::string description() const { return "winograd:4x4"; }
  void run(const Convolution::Tensors& t);

 private:
  struct Lane {  // memory of one chunk in progress
    float *from, *to;
    void* product;
  };
  void run_images(const Convolution::Tensors& t, char* workspace);
  void run_weights(const Convolution::Tensors& t, char* workspace);
  void run_chunk(const Convolution::Tensors& t, const float* weights, int64_t chunk, const Lane& lane,
                 uint8_t* doubtful);
  void choose_chunks();
  Lane lane(char* workspace, int64_t i) const;
  int64_t lane_bytes() const;
  int64_t matrices_bytes() const;

  kernels::ConvGeometry g_;
  Convolution::Options options_;
  kernels::WinogradImage in_, out_;  // for this product: the gradient of the data maps y to x
  kernels::WinogradGrid grid_;       // the tiles of out_; of y for the gradient of the weights
  kernels::WinogradWeights weights_;
  int64_t pad_rows_ = 0, pad_columns_ = 0;
  int64_t chunk_tiles_ = 0, chunks_ = 0, lanes_ = 1;
  std::unique_ptr<Matmul> product_, further_product_;  // further_product_ adds to its output
  std::unique_ptr<kernels::PackedWeights> kept_;       // null: weights are transformed in each run
};

}  // namespace hybridnet::onednn
