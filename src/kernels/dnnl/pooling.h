// Average pooling and its gradient through oneDNN, for the cases where benchmarks/KERNELS.md shows that it is faster
// than kernels/conv/pooling.h. Maximum pooling is not here: oneDNN's ignores NaN and returns the lowest finite value
// for -infinity.
#pragma once

#include "kernels/conv/pooling.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::onednn {

class AveragePooling {
 public:
  // True if oneDNN computes this in float32, and faster. Depends on the geometry and the instruction set alone.
  static bool pays(const kernels::PoolGeometry& g);

  AveragePooling(const kernels::PoolGeometry& g, bool gradient);
  int64_t workspace_bytes() const { return workspace_bytes_; }
  std::string description() const;  // the implementation for all cores
  // Forward: from the data to the output; as a gradient: from the output's gradient to the data's gradient.
  void run(const float* from, float* to, void* workspace);

 private:
  struct Variant {
    Program main;
    std::string implementation;
  };
  Variant make() const;
  double flops() const;
  const Variant& variant(int cores) const {
    return variants_.get(cores, [this] { return make(); });
  }

  kernels::PoolGeometry g_;
  bool gradient_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
};

}  // namespace hybridnet::onednn
