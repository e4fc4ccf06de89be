// Average pooling and its gradient through oneDNN, where benchmarks/KERNELS.md shows that it is faster than
// kernels/pooling.h. Maximum pooling is not here: oneDNN's ignores NaN and takes -infinity for the lowest finite value.
#pragma once

#include "kernels/dnnl/program.h"
#include "kernels/pooling.h"

namespace hybridnet::onednn {

class AveragePooling {
 public:
  // Whether it computes this in float32, and faster. Depends on the geometry and the instruction set alone.
  static bool pays(const kernels::PoolGeometry& g);

  AveragePooling(const kernels::PoolGeometry& g, bool gradient);
  int64_t workspace_bytes() const { return workspace_bytes_; }
  std::string description() const;  // of the implementation for all cores
  // From the data to the output; as a gradient, from the output's gradient to that of the data.
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
