// Products of matrices of any dtype, for kernels of operators.
#pragma once

#include "hybridnet/op.h"
#include "kernels/dnnl/matmul.h"
#include "kernels/gemm.h"

namespace hybridnet::ops {

// out[i] = op(a[i]) op(b[i]) for `batch` matrices that follow each other in memory. Every dtype of kNumeric; float16
// and bfloat16 are multiplied and summed in float32.
void batched_product(DType dtype, int64_t batch, const kernels::GemmShape& s, const void* a, const void* b, void* out);

// The same for one dtype and shape through oneDNN's blocked product: float32, and bfloat16 where the machine multiplies
// it.
class DnnlProduct final : public Kernel {
 public:
  static bool supports(DType dtype) {
    return dtype == DType::kFloat32 || (dtype == DType::kBFloat16 && onednn::has_bfloat16());
  }
  DnnlProduct(DType dtype, int64_t batch, const kernels::GemmShape& s)
      : matmul_({.batch = batch,
                 .m = s.m,
                 .n = s.n,
                 .k = s.k,
                 .transpose_a = s.transpose_a,
                 .transpose_b = s.transpose_b,
                 .dtype = dtype}) {}
  int64_t workspace_bytes() const override { return matmul_.workspace_bytes(); }
  void run(const KernelArgs& args) override {
    matmul_.run(args.in[0].data, args.in[1], nullptr, args.out[0].data, args.workspace);
  }

 private:
  onednn::Matmul matmul_;
};

}  // namespace hybridnet::ops
