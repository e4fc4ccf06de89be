// How kernels are written here. A kernel is a function of one struct, `a`, which a launch copies (device/program.h), so
// that a launch needs no description of parameters. NVRTC compiles the text for a GPU; tests compile the same text with
// a C++ compiler, which defines the words below in its own way (tests/cuda/host_kernels.h).
//   HN_KERNEL(name, Arguments) { ... }        threads that do not cooperate
//   HN_BLOCK_KERNEL(name, Arguments) { ... }  the threads of a block may use HN_SHARED, __syncthreads and __shfl_xor_sync
//   HN_SHARED(T, tile, 1024);                 an array of the block, at the top of an HN_BLOCK_KERNEL; read an element into
//                                             a T, not into auto, and pass the array to functions as HN_SHARED_POINTER(T)
#pragma once

#include <cstdint>

// __grid_constant__: the struct stays where the launch put it, and indexing its arrays copies nothing to local memory.
#ifndef HN_KERNEL
#define HN_KERNEL(name, Arguments) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Arguments a)
#define HN_BLOCK_KERNEL(name, Arguments) extern "C" __global__ void __launch_bounds__(256) name(const __grid_constant__ Arguments a)
#define HN_SHARED(T, name, count) __shared__ T name[count]
#define HN_SHARED_POINTER(T) T*
#endif

namespace hybridnet::device {

// The first element of this thread, and the distance to its next one: `for (int64_t i = first(); i < n; i += step())`.
__device__ inline int64_t first() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

}  // namespace hybridnet::device
