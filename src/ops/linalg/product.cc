#include "ops/linalg/product.h"

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "kernels/product/device_product.h"

namespace hybridnet::ops {
namespace {

constexpr double kElementNs = 1.2;

template <typename From, typename To>
void convert(const From* from, To* to, int64_t count) {
  parallel_for(count, kElementNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(static_cast<float>(from[i]));
  });
}

// f(i) computes product i. A single product uses all cores; many products use one core each.
template <typename F>
void for_each_product(int64_t batch, const kernels::GemmShape& s, F&& f) {
  if (batch == 1) return f(0);
  constexpr double kMultiplicationNs = 0.04;
  parallel_for(batch, kMultiplicationNs * static_cast<double>(s.m * s.n * s.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

template <typename T>
void fast_product(int64_t batch, const kernels::GemmShape& s, const T* a, const T* b, T* out) {
  for_each_product(batch, s, [&](int64_t i) {
    kernels::gemm(s, T(1), a + i * s.m * s.k, b + i * s.k * s.n, T(0), out + i * s.m * s.n);
  });
}

template <typename T>
void half_product(int64_t batch, const kernels::GemmShape& s, const T* a, const T* b, T* out) {
  const int64_t a_size = batch * s.m * s.k, b_size = batch * s.k * s.n, out_size = batch * s.m * s.n;
  const OwnedBlock space((a_size + b_size + out_size) * static_cast<int64_t>(sizeof(float)));
  float *wide_a = static_cast<float*>(space.data()), *wide_b = wide_a + a_size, *wide_out = wide_b + b_size;
  convert(a, wide_a, a_size);
  convert(b, wide_b, b_size);
  fast_product(batch, s, wide_a, wide_b, wide_out);
  convert(wide_out, out, out_size);
}

}  // namespace

void batched_product(DType dtype, int64_t batch, const kernels::GemmShape& s, const void* a, const void* b, void* out) {
  if (s.m == 0 || s.n == 0) return;  // for any number of empty products
  if (device::current())
    return kernels::on_device::gemm(s, dtype, 1, a, b, 0, out, {batch, s.m * s.k, s.k * s.n, s.m * s.n});
  dispatch_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T *left = static_cast<const T*>(a), *right = static_cast<const T*>(b);
    T* result = static_cast<T*>(out);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      fast_product(batch, s, left, right, result);
    } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
      half_product(batch, s, left, right, result);
    } else {
      for_each_product(batch, s, [&](int64_t i) {
        kernels::gemm_plain(s, left + i * s.m * s.k, right + i * s.k * s.n, result + i * s.m * s.n);
      });
    }
  });
}

}  // namespace hybridnet::ops
