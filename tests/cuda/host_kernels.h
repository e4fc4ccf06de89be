// The words of CUDA text (src/kernels/device) for g++, so that the text which NVRTC compiles for a GPU runs on the CPU.
// nvrtc.cc includes this header before every text. See src/kernels/device/kernel.cuh for the words of our own.
// Owner:   each compiled text has its own copy of everything here.
// Threads: one kernel runs at a time (host_interface.h).
#ifdef HN_EMBED
HN_EMBED(host_kernels)
#else
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#include "host_interface.h"

#define HN_HOST_KERNELS 1
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

static hn_host::Builtins hn_builtins;
static hn_host::Services* hn_services;
#define threadIdx hn_builtins.thread
#define blockIdx hn_builtins.block
#define blockDim hn_builtins.block_dim
#define gridDim hn_builtins.grid_dim
#define warpSize 32

#include "host_intrinsics.h"
#include "host_shared.h"

namespace hn_host {

constexpr unsigned kMaxThreads = 256;  // __launch_bounds__ of kernel.cuh

static inline Index3 index_of(unsigned long long number, const Index3& size) {
  if (size.y == 1 && size.z == 1) return {static_cast<unsigned>(number), 0, 0};
  const unsigned long long rest = number / size.x;
  return {static_cast<unsigned>(number % size.x), static_cast<unsigned>(rest % size.y),
          static_cast<unsigned>(rest / size.y)};
}

// Runs all threads of a grid one after the other: for kernels whose threads do not cooperate.
template <class Body>
__attribute__((always_inline)) inline void run_grid(const Order& blocks, const Order& threads, Body body) {
  const Index3 grid = hn_builtins.grid_dim, block = hn_builtins.block_dim;
  const unsigned long long block_count = static_cast<unsigned long long>(grid.x) * grid.y * grid.z;
  const unsigned thread_count = block.x * block.y * block.z;
  unsigned long long at_block = blocks.start;
  for (unsigned long long b = 0; b < block_count; ++b) {
    hn_builtins.block = index_of(at_block, grid);
    unsigned at_thread = static_cast<unsigned>(threads.start);
    for (unsigned t = 0; t < thread_count; ++t) {
      hn_builtins.thread = index_of(at_thread, block);
      body();
      at_thread += static_cast<unsigned>(threads.stride);
      if (at_thread >= thread_count) at_thread -= thread_count;
    }
    at_block += blocks.stride;
    if (at_block >= block_count) at_block -= block_count;
  }
}

}  // namespace hn_host

// Plain kernels, which declare their parameters as any function does. Their threads may cooperate. Shared memory is not
// checked; nvrtc.cc writes HN_PLAIN_KERNEL at the end of texts that have such kernels.
alignas(16) static unsigned char hn_dynamic_shared[hn_host::kMaxDynamicShared];

namespace hn_host {

constexpr unsigned kMaxPlainThreads = 1024;

template <unsigned kCount>
struct ParameterList {
  Parameter at[kCount + 1];
  unsigned long long bytes;
};

template <class... P>
constexpr ParameterList<sizeof...(P)> parameter_list() {
  const unsigned long long sizes[] = {sizeof(P)..., 0}, alignments[] = {alignof(P)..., 1};
  ParameterList<sizeof...(P)> list{};
  for (unsigned i = 0; i < sizeof...(P); ++i) {
    list.at[i] = {(list.bytes + alignments[i] - 1) / alignments[i] * alignments[i], sizes[i]};
    list.bytes = list.at[i].offset + sizes[i];
  }
  return list;
}

template <auto kFunction>
struct PlainKernel;
template <class... P, void (*kFunction)(P...)>
struct PlainKernel<kFunction> {
  static constexpr ParameterList<sizeof...(P)> kList = parameter_list<P...>();

  template <size_t... I>
  static void call(const char* arguments, std::index_sequence<I...>) {
    kFunction(*reinterpret_cast<const P*>(arguments + kList.at[I].offset)...);
  }
  static void run(const void* arguments, const Order&, const Order&) {
    call(static_cast<const char*>(arguments), std::make_index_sequence<sizeof...(P)>());
  }
};

template <auto kFunction>
constexpr Kernel plain_kernel() {
  using Plain = PlainKernel<kFunction>;
  return {kKernelMagic,     Plain::kList.bytes, true,
          kMaxPlainThreads, &hn_builtins,       &hn_services,
          Plain::run,       Plain::kList.at,    sizeof(Plain::kList.at) / sizeof(Parameter) - 1};
}

}  // namespace hn_host

// The function comes last: a name of C++ may have commas.
#define HN_PLAIN_KERNEL(symbol, ...)                                                \
  extern "C" {                                                                      \
  __attribute__((used, visibility("default"))) hn_host::Kernel hn_kernel_##symbol = \
      hn_host::plain_kernel<__VA_ARGS__>();                                         \
  }

#define HN_HOST_DESCRIPTOR(name, Arguments, cooperates)                                                             \
  extern "C" {                                                                                                      \
  __attribute__((used, visibility("default")))                                                                      \
  hn_host::Kernel hn_kernel_##name = {hn_host::kKernelMagic, sizeof(Arguments), cooperates,   hn_host::kMaxThreads, \
                                      &hn_builtins,          &hn_services,      hn_run_##name};                     \
  }

#define HN_KERNEL(name, Arguments)                                                                                \
  static inline __attribute__((always_inline)) void hn_body_##name(const Arguments& a);                           \
  static void hn_run_##name(const void* arguments, const hn_host::Order& blocks, const hn_host::Order& threads) { \
    const Arguments& a = *static_cast<const Arguments*>(arguments);                                               \
    hn_host::run_grid(                                                                                            \
        blocks, threads, [&a]() __attribute__((always_inline)) { hn_body_##name(a); });                           \
  }                                                                                                               \
  HN_HOST_DESCRIPTOR(name, Arguments, false)                                                                      \
  static inline void hn_body_##name(const Arguments& a)

#define HN_BLOCK_KERNEL(name, Arguments)                                                           \
  static void hn_body_##name(const Arguments& a);                                                  \
  static void hn_run_##name(const void* arguments, const hn_host::Order&, const hn_host::Order&) { \
    hn_body_##name(*static_cast<const Arguments*>(arguments));                                     \
  }                                                                                                \
  HN_HOST_DESCRIPTOR(name, Arguments, true)                                                        \
  static void hn_body_##name(const Arguments& a)

#endif
