// Products of many rows with weights that are packed once: gradients of states, step by step, and of inputs. float32
// and float64. Use the cores of the calling thread; the bits do not depend on their number.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// Whether these products are faster than gemm here, and a step that multiplies its input than one product for all
// steps. Measured with float32 on two cores of an AMD EPYC without AVX-512, GFLOP/s a core: 35 times (32, 1024) x
// (1024, 256) 93 packed, 77 by gemm; (1120, 1024) x (1024, 256) 98 packed, 84 by gemm. Other instruction sets were not
// measured.
bool packed_products_pay();

// packed = weights (depth, columns), as many elements, in the order in which products read them.
void pack_columns(int64_t depth, int64_t columns, const float* weights, float* packed);
void pack_columns(int64_t depth, int64_t columns, const double* weights, double* packed);

template <typename T>
struct PackedProduct {
  const T* packed;
  int64_t depth, columns;
  const T* rows;  // (count, depth)
  int64_t count;
  const T* addend;  // (count, columns), null for none; may be out
  T* out;           // (count, columns)
};
// out = rows * weights + addend
void packed_product(const PackedProduct<float>& p);
void packed_product(const PackedProduct<double>& p);

}  // namespace hybridnet::kernels
