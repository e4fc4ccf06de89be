// Texts of kernels for the tests of the stand-in: right ones, and some with planted errors.
#pragma once

namespace hybridnet::test {

inline constexpr const char* kKernels = R"(
#include "kernels/device/kernel.cuh"
namespace hybridnet::device {
struct Arguments {
  const float* in;
  float* out;
  int64_t n;
};
HN_KERNEL(twice, Arguments) {
  for (int64_t i = first(); i < a.n; i += step()) a.out[i] = a.in[i] * 2.0f;
}
HN_KERNEL(add_one, Arguments) {
  for (int64_t i = first(); i < a.n; i += step()) a.out[i] += 1.0f;
}
__device__ void sum_tile(HN_SHARED_POINTER(double) tile) {
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) tile[threadIdx.x] += tile[threadIdx.x + half];
    __syncthreads();
  }
}
HN_BLOCK_KERNEL(row_sum, Arguments) {
  HN_SHARED(double, tile, 256);
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x) sum += a.in[blockIdx.x * a.n + i];
  tile[threadIdx.x] = sum;
  __syncthreads();
  sum_tile(tile);
  if (threadIdx.x == 0) a.out[blockIdx.x] = static_cast<float>(tile[0]);
}
HN_BLOCK_KERNEL(warp_sum, Arguments) {
  float sum = a.in[threadIdx.x];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  a.out[threadIdx.x] = sum;
}
HN_BLOCK_KERNEL(shift_down, Arguments) { a.out[threadIdx.x] = __shfl_down_sync(0xffffffffu, a.in[threadIdx.x], 3); }
HN_BLOCK_KERNEL(neighbor_of_warp, Arguments) {
  HN_SHARED(float, tile, 256);
  tile[threadIdx.x] = a.in[threadIdx.x];
  __syncwarp();
  a.out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
}  // namespace hybridnet::device
)";

inline constexpr const char* kWrongKernels = R"(
#include "kernels/device/kernel.cuh"
namespace hybridnet::device {
struct Arguments {
  const float* in;
  float* out;
  int64_t n;
};
HN_BLOCK_KERNEL(no_barrier, Arguments) {
  HN_SHARED(float, tile, 256);
  tile[threadIdx.x] = a.in[threadIdx.x];
  a.out[threadIdx.x] = tile[threadIdx.x ^ 64];
}
HN_BLOCK_KERNEL(no_barrier_before_write, Arguments) {
  HN_SHARED(float, tile, 256);
  tile[threadIdx.x] = a.in[threadIdx.x];
  __syncthreads();
  const float other = tile[threadIdx.x ^ 64];
  tile[threadIdx.x] = other;
  a.out[threadIdx.x] = other;
}
HN_BLOCK_KERNEL(never_written, Arguments) {
  HN_SHARED(float, tile, 256);
  a.out[threadIdx.x] = tile[threadIdx.x];
}
HN_BLOCK_KERNEL(too_far, Arguments) {
  HN_SHARED(float, tile, 255);
  tile[threadIdx.x] = 1.0f;
}
HN_BLOCK_KERNEL(barrier_for_some, Arguments) {
  if (threadIdx.x < 100) __syncthreads();
}
HN_BLOCK_KERNEL(shuffle_for_some, Arguments) {
  if (threadIdx.x != 7) a.out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}
HN_KERNEL(barrier_alone, Arguments) { __syncthreads(); }
HN_KERNEL(beyond, Arguments) { a.out[a.n + first()] = 1.0f; }
}  // namespace hybridnet::device
)";

}  // namespace hybridnet::test
