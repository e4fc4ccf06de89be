// Batched matrix product through oneDNN: out = activation(alpha * (op(a) op(b) + bias) + addend), all dense row-major.
#pragma once

#include "kernels/dnnl/post_ops.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::onednn {

class Matmul {
 public:
  struct Options {
    int64_t batch = 1, m = 0, n = 0, k = 0;  // all positive
    bool transpose_a = false, transpose_b = false;
    DType dtype = DType::kFloat32;
    bool bias = false;  // (n), added to each row
    float alpha = 1;
    bool packs = false;       // keeps a packed copy of b, which rarely changes
    bool accumulate = false;  // out += a b
    bool add = false;         // adds another operand with the layout of out
    Activation activation = {};
  };
  explicit Matmul(const Options& options);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  bool packs() const { return options_.packs; }  // true: b may be read through a copy; else run() makes a ReadLease
  std::string description() const;               // the implementation for all cores
  void run(const void* a, const TensorRef& b, const void* bias, void* out, void* workspace,
           const void* addend = nullptr);

 private:
  struct Variant {
    Program pack, main;
    std::string implementation;
    std::unique_ptr<kernels::PackedWeights> packed;  // null: b is used as it is
    int64_t bytes() const { return std::max(pack.workspace_bytes(), main.workspace_bytes()); }
  };
  Variant make() const;
  void run_primitive(const void* a, const TensorRef& b, const void* bias, void* out, void* workspace,
                     const void* addend) const;
  void mend(const void* a, const TensorRef& b, const void* bias, void* out, const void* addend) const;
  void set_packing(Variant& v, const Desc& plain, const Desc& packed) const;
  double flops() const;

  Options options_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
};

}  // namespace hybridnet::onednn
