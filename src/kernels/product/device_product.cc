#include "kernels/product/device_product.h"

#include <algorithm>
#include <string>

#include "device/library_product.h"
#include "kernels/device/product_arguments.h"
#include "kernels/device/program_table.h"
#include "kernels/elementwise/device_fused.h"
#include "kernels/product/gemm.h"

namespace hybridnet::kernels::on_device {
namespace {

// The type in which a tile of elements waits in shared memory.
const char* shared_name(DType dtype) {
  if (dtype == DType::kFloat64) return "double";
  return is_floating(dtype) ? "float" : "uint64_t";
}

constexpr int64_t kTile = 64, kDepth = 16;  // the sizes of product.cuh

constexpr int64_t kBlocksAtOnce = 128;  // blocks that run side by side; a constant, so that it selects equally anywhere

// The steps of 16 of k that our own kernel needs, one after the other.
int64_t own_steps(const GemmShape& s, int64_t batch) {
  const auto parts = [](int64_t size, int64_t part) { return (size + part - 1) / part; };
  const int64_t tiles = batch * parts(s.m, kTile) * parts(s.n, kTile);
  return parts(tiles, kBlocksAtOnce) * parts(s.k, kDepth);
}

bool library_gemm(const GemmShape& s, DType dtype, double alpha, const void* a, const void* b, double beta, void* c,
                  const ProductBatch& batch) {
  // While a chain of elementwise functions is recorded, its pointers are numbers, and nothing may be pushed.
  if (FusedRecording::current() != nullptr) return false;
  return is_floating(dtype) && device::library_product({.dtype = dtype,
                                                        .transpose_a = s.transpose_a,
                                                        .transpose_b = s.transpose_b,
                                                        .m = s.m,
                                                        .n = s.n,
                                                        .k = s.k,
                                                        .lda = s.lda,
                                                        .ldb = s.ldb,
                                                        .ldc = s.ldc,
                                                        .batch = batch.batch,
                                                        .a_step = batch.a_step,
                                                        .b_step = batch.b_step,
                                                        .c_step = batch.c_step,
                                                        .alpha = alpha,
                                                        .beta = beta,
                                                        .a = a,
                                                        .b = b,
                                                        .c = c},
                                                       own_steps(s, batch.batch));
}

}  // namespace

void gemm(const GemmShape& s, DType dtype, double alpha, const void* a, const void* b, double beta, void* c,
          const ProductBatch& batch) {
  if (s.m == 0 || s.n == 0 || batch.batch == 0) return;
  if (library_gemm(s, dtype, alpha, a, b, beta, c, batch)) return;
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
