// The begin and the end of the tiles of dense layers.
#pragma once

#include <cstring>

#include "kernels/product/gemm.h"
#include "ops/nn/activation_params.h"

namespace hybridnet::ops {

// Initializes each tile of out with addend + bias, to which the product is added, and applies the activation at its
// end.
template <typename T>
class DenseEnds final : public kernels::GemmEnds {
 public:
  DenseEnds(const T* addend, const T* bias, const onednn::Activation& activation, int64_t hidden, T* out)
      : addend_(addend), bias_(bias), activation_(activation), hidden_(hidden), out_(out) {}
  void begin(const kernels::GemmTile& tile) const override {
    if (!addend_ && !bias_) return;
    for (int64_t i = tile.row; i < tile.row + tile.rows; ++i) {
      T* to = out_ + i * hidden_ + tile.column;
      const T* from = addend_ ? addend_ + i * hidden_ + tile.column : bias_ + tile.column;
      if (addend_ && bias_) {
        for (int64_t j = 0; j < tile.columns; ++j) to[j] = from[j] + bias_[tile.column + j];
      } else {
        std::memcpy(to, from, static_cast<size_t>(tile.columns) * sizeof(T));
      }
    }
  }
  void end(const kernels::GemmTile& tile) const override {
    if (activation_.kind == kernels::ActivationKind::kNone) return;
    if (tile.columns == hidden_) return apply_activation(activation_, out_ + tile.row * hidden_, tile.rows * hidden_);
    for (int64_t i = tile.row; i < tile.row + tile.rows; ++i)
      apply_activation(activation_, out_ + i * hidden_ + tile.column, tile.columns);
  }

 private:
  const T* addend_;
  const T* bias_;
  const onednn::Activation& activation_;
  int64_t hidden_;
  T* out_;
};

}  // namespace hybridnet::ops
