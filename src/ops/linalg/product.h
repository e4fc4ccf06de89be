// Matrix products of any dtype, for kernels of operators.
#pragma once

#include "hybridnet/op.h"
#include "kernels/dnnl/matmul.h"
#include "kernels/product/gemm.h"
#include "kernels/product/gemm_choice.h"

namespace hybridnet::ops {

// out[i] = op(a[i]) op(b[i]) for `batch` consecutive matrices. Accepts every dtype of kNumeric; float16 and bfloat16
// are multiplied and summed in float32.
void batched_product(DType dtype, int64_t batch, const kernels::GemmShape& s, const void* a, const void* b, void* out);

// Whether oneDNN's matmul is faster than one kernels::gemm per product. matmul supports float32, and bfloat16 if the
// machine does. Measured: a single product with fewer than 32 rows is faster in kernels::gemm. Many calls of
// kernels::gemm in a row also cost page faults, because each allocates its own scratch memory. A tiled kernels::gemm
// balances better among cores, and for shapes where it uses another algorithm, matmul is as slow as oneDNN's gemm.
inline bool pays_blocked_product(Device device, DType dtype, int ndim, int64_t batch, const kernels::GemmShape& s) {
  if (device.type == DeviceType::kGPU) return false;  // oneDNN runs on the CPU
  if (dtype != DType::kFloat32 && !(dtype == DType::kBFloat16 && onednn::has_bfloat16())) return false;
  const int64_t work = batch * s.m * s.n * s.k;
  if (ndim == 2 ? s.m < 32 || work < 32 * 32 * 32 : work < 4096) return false;
  if (dtype != DType::kFloat32) return true;
  const kernels::GemmAlgorithm algorithm = kernels::choose_gemm(s);
  return algorithm == kernels::GemmAlgorithm::kOneDnnThreads ||
         (ndim > 2 && algorithm == kernels::GemmAlgorithm::kOneDnn);
}

// alpha * op(a[i]) op(b[i]) + addend[i] for one dtype and shape through oneDNN. The third input of the kernel is the
// addend.
class DnnlProduct final : public Kernel {
 public:
  DnnlProduct(DType dtype, int64_t batch, const kernels::GemmShape& s, float alpha = 1, bool add = false)
      : matmul_({.batch = batch,
                 .m = s.m,
                 .n = s.n,
                 .k = s.k,
                 .transpose_a = s.transpose_a,
                 .transpose_b = s.transpose_b,
                 .dtype = dtype,
                 .alpha = alpha,
                 .add = add}) {}
  int64_t workspace_bytes() const override { return matmul_.workspace_bytes(); }
  void run(const KernelArgs& args) override {
    matmul_.run(args.in[0].data, args.in[1], nullptr, args.out[0].data, args.workspace,
                args.in.size() > 2 ? args.in[2].data : nullptr);
  }

 private:
  onednn::Matmul matmul_;
};

}  // namespace hybridnet::ops
