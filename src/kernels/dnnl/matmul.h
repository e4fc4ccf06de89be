// Batched matrix product through oneDNN: out = activation(op(a) op(b) + bias + addend), all dense row-major, with the
// weights b packed ahead when they rarely change.
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
    bool bias = false;        // (n), added to each row
    bool remember = false;    // b rarely changes: keep a packed copy
    bool accumulate = false;  // out += a b
    bool add = false;         // a further operand like out is added
    Activation activation = {};
  };
  explicit Matmul(const Options& options);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  void run(const void* a, const void* b, const void* bias, void* out, uint64_t b_version, void* workspace,
           const void* addend = nullptr);

 private:
  struct Variant {
    Program pack, main;
    int64_t packed_bytes = 0;  // 0: b is used as it is
    int64_t bytes() const { return std::max(pack.workspace_bytes(), main.workspace_bytes()); }
  };
  Variant make() const;
  int cores() const;

  Options options_;
  int64_t workspace_bytes_ = 0;
  PerCores<Variant> variants_;
  PackedCopy remembered_;
};

}  // namespace hybridnet::onednn
