#include "kernels/product/device_product.h"

#include <algorithm>
#include <string>

#include "kernels/device/product_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/product/gemm.h"

namespace hybridnet::kernels::on_device {
namespace {

// The type in which a tile of elements waits in shared memory.
const char* shared_name(DType dtype) {
  if (dtype == DType::kFloat64) return "double";
  return is_floating(dtype) ? "float" : "uint64_t";
}

}  // namespace

void gemm(const GemmShape& s, DType dtype, double alpha, const void* a, const void* b, double beta, void* c,
          const ProductBatch& batch) {
  constexpr int64_t kTile = 64;
  if (s.m == 0 || s.n == 0 || batch.batch == 0) return;
  const device::ProductArguments arguments{.a = a,
                                           .b = b,
                                           .c = c,
                                           .m = s.m,
                                           .n = s.n,
                                           .k = s.k,
                                           .a_row = s.transpose_a ? 1 : s.lda,
                                           .a_column = s.transpose_a ? s.lda : 1,
                                           .b_row = s.transpose_b ? 1 : s.ldb,
                                           .b_column = s.transpose_b ? s.ldb : 1,
                                           .c_row = s.ldc,
                                           .batch = batch.batch,
                                           .a_step = batch.a_step,
                                           .b_step = batch.b_step,
                                           .c_step = batch.c_step,
                                           .tiles_down = (s.m + kTile - 1) / kTile,
                                           .tiles_across = (s.n + kTile - 1) / kTile,
                                           .alpha = alpha,
                                           .beta = beta};
  static ProgramTable<kDTypeCodes> programs;
  programs
      .get(static_cast<int>(dtype),
           [&] {
             return include_line("product.cuh") +
                    block_kernel_line("product", "ProductArguments", "product<" + element_name(dtype) + ">",
                                      shared_name(dtype), "hybridnet::device::kProductRoom");
           })
      .launch("product", device::geometry_for_rows(batch.batch * arguments.tiles_down * arguments.tiles_across, 256),
              arguments);
}

}  // namespace hybridnet::kernels::on_device
