// Convolution through oneDNN: forward, gradient of the data, gradient of the weights. Weights come and go in plain
// order and are packed into the layout that the implementation likes; with `remember` the packed copy outlives the
// call.
#pragma once

#include <memory>

#include "kernels/conv_geometry.h"
#include "kernels/dnnl/post_ops.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::onednn {

enum class ConvKind { kForward, kBackwardData, kBackwardWeights };

class Convolution {
 public:
  struct Options {
    ConvKind kind = ConvKind::kForward;
    DType dtype = DType::kFloat32;
    bool bias = false;      // forward: added; backward data: added per channel of x; backward weights: also computed
    bool remember = false;  // weights rarely change: keep the packed copy
    bool add = false;       // forward: y += addend, before the activation
    Activation activation = {};
  };
  // Throws dnnl::error when no implementation exists.
  Convolution(const kernels::ConvGeometry& geometry, const Options& options);

  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Pointers by kind; bias and addend null when not asked for in the options.
  //   forward:          a = x,  b = w, c = bias, d = addend; out0 = y
  //   backward data:    a = dy, b = w, c = bias;             out0 = dx
  //   backward weights: a = x,  b = dy;                      out0 = dw, out1 = db
  struct Tensors {
    const void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr;
    void *out0 = nullptr, *out1 = nullptr;
    uint64_t weight_version = 0;
    void* workspace = nullptr;  // workspace_bytes()
  };
  void run(const Tensors& t);

 private:
  struct Variant {
    Program pack;  // plain weights -> packed weights
    Program main;
    Desc packed;
    bool packs = false, remembers = false;
    int64_t bytes() const {
      return std::max(pack.workspace_bytes(), main.workspace_bytes()) + (remembers ? 0 : packed_bytes());
    }
    int64_t packed_bytes() const { return packs ? (static_cast<int64_t>(packed.get_size()) + 63) / 64 * 64 : 0; }
  };
  Variant make() const;
  int cores() const;
  Variant make_forward() const;
  Variant make_backward_data() const;
  Variant make_backward_weights() const;

  kernels::ConvGeometry g_;
  Options options_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
  PackedCopy remembered_;
};

}  // namespace hybridnet::onednn
