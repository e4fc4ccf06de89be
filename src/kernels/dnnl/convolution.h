// Convolution through oneDNN: forward, gradient of the data, gradient of the weights. Weights are passed and returned
// in plain order and packed into the layout that the implementation prefers; with `remember` the packed copy is kept
// after the call.
#pragma once

#include <memory>
#include <span>

#include "kernels/conv/conv_geometry.h"
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
  // Throws dnnl::error if no implementation exists.
  Convolution(const kernels::ConvGeometry& geometry, const Options& options);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  std::string description() const;  // the implementation for all cores

  // Pointers by kind; bias and addend are null unless the options request them.
  //   forward:          a = x,  b = w, c = bias, d = addend; out0 = y
  //   backward data:    a = dy, b = w, c = bias;             out0 = dx
  //   backward weights: a = x,  b = dy;                      out0 = dw, out1 = db
  struct Tensors {
    const void* a = nullptr;
    TensorRef b;
    const void *c = nullptr, *d = nullptr;
    void *out0 = nullptr, *out1 = nullptr;
    void* workspace = nullptr;  // workspace_bytes()
  };
  void run(const Tensors& t);

 private:
  struct Variant {
    bool activates = true;  // false: a separate pass applies the activation
    Program pack;           // plain weights -> packed weights; empty: the plain weights are used
    Program main;
    std::string implementation;
    int64_t packed_bytes = 0;
    std::unique_ptr<kernels::PackedWeights> kept;  // null: packed in each run, into the start of the workspace
    int64_t bytes() const {
      return std::max(pack.workspace_bytes(), main.workspace_bytes()) + (kept ? 0 : packed_bytes);
    }
  };
  void set_packing(Variant& v, const Desc& plain, const Desc& packed) const;
  Variant make() const;
  Variant make_forward() const;
  Variant make_forward(const Activation& activation) const;
  Variant make_backward_data() const;
  Variant make_backward_weights() const;

  void run_variant(const Variant& v, const Tensors& t) const;
  void mend(const Tensors& t) const;
  int64_t results() const { return g_.n * g_.o * g_.out_size(); }

  kernels::ConvGeometry g_;
  Options options_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
};

// Recomputes the images with a nonzero entry in `marks`, for which another algorithm gave wrong results. For a forward
// convolution or a gradient of the data, float32.
void convolve_marked(const kernels::ConvGeometry& g, const Convolution::Options& options, const Convolution::Tensors& t,
                     std::span<const uint8_t> marks);
// The same for the gradient of the weights.
void convolve_weights(const kernels::ConvGeometry& g, const Convolution::Options& options,
                      const Convolution::Tensors& t);

}  // namespace hybridnet::onednn
