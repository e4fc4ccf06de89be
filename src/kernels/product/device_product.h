// Matrix products in memory of a device: the forms of gemm.h that run on device::current(), which must be set.
// Threads: any. Launches are in the order of the stream.
// Throws:  EngineError.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {
struct GemmShape;
}

namespace hybridnet::kernels::on_device {

// Products of `batch` matrices, which lie a_step, b_step and c_step elements apart. All dtypes but bool; alpha and beta
// of integers and halves are 1 and 0.
struct ProductBatch {
  int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;
};
void gemm(const GemmShape& s, DType dtype, double alpha, const void* a, const void* b, double beta, void* c,
          const ProductBatch& batch = {});

}  // namespace hybridnet::kernels::on_device
