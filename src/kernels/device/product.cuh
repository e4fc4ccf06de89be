// Matrix products: each block of 256 threads computes a tile of 64 x 64 elements of C, each thread 4 x 4 of them. Tiles
// of A and B, 16 deep, pass through shared memory. Each element is summed in the order of k, in one accumulator.
// For large products of floats a library is faster; this is what runs without one.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/product_arguments.h"

namespace hybridnet::device {

constexpr int kProductTile = 64, kProductDepth = 16, kProductEach = 4;
constexpr int kProductRow = kProductTile + 4;                  // keeps columns of a tile in different banks
constexpr int kProductRoom = 2 * kProductDepth * kProductRow;  // elements of shared memory

// Floats round once for each multiplication and addition; halves and integers are added after they were multiplied.
template <class T, class Acc>
inline __device__ Acc multiply_add(Acc x, Acc y, Acc sum) {
  if constexpr (std::is_floating_point_v<T>)
    return std::fma(x, y, sum);
  else
    return x * y + sum;
}

// The accumulator of elements of type T: integers wrap around.
template <class T>
using product_sum_t = wrapping_t<accumulator_t<T>>;

template <class Acc, class T>
inline __device__ Acc factor(T x) {
  if constexpr (is_half<T>)
    return static_cast<float>(x);
  else
    return static_cast<Acc>(x);
}

// Copies a tile of an operand to shared memory: room[x * kProductRow + i] is element (first + i, depth + x); elements
// outside of the operand are 0. Neighboring threads read neighboring memory.
template <class T, class Room>
inline __device__ void load_tile(const T* from, int64_t row_stride, int64_t depth_stride, int64_t first, int64_t rows,
                                 int64_t depth, int64_t end, Room& room, int offset) {
  using Acc = product_sum_t<T>;
  constexpr int kCount = kProductTile * kProductDepth;
  for (int e = static_cast<int>(threadIdx.x); e < kCount; e += 256) {
    const bool along_depth = depth_stride == 1;
    const int x = along_depth ? e % kProductDepth : e / kProductTile;
    const int i = along_depth ? e / kProductDepth : e % kProductTile;
    const bool inside = first + i < rows && depth + x < end;
    room[offset + x * kProductRow + i] =
        inside ? factor<Acc>(from[(first + i) * row_stride + (depth + x) * depth_stride]) : Acc(0);
  }
}

template <class T, class Acc>
inline __device__ void store_product(const ProductArguments& a, T* c, Acc sum) {
  if constexpr (std::is_floating_point_v<T>) {
    const T product = static_cast<T>(a.alpha) * sum;
    *c = a.beta == 0 ? product : std::fma(static_cast<T>(a.beta), *c, product);
  } else {
    *c = convert<T>(static_cast<accumulator_t<T>>(sum));
  }
}

template <class T, class Room>
inline __device__ void product_tile(const ProductArguments& a, int64_t tile, Room& room) {
  using Acc = product_sum_t<T>;
  constexpr int kOffsetB = kProductDepth * kProductRow;
  const int64_t matrix = tile / (a.tiles_down * a.tiles_across), place = tile % (a.tiles_down * a.tiles_across);
  const int64_t top = place / a.tiles_across * kProductTile, left = place % a.tiles_across * kProductTile;
  const T* left_matrix = static_cast<const T*>(a.a) + matrix * a.a_step;
  const T* right_matrix = static_cast<const T*>(a.b) + matrix * a.b_step;
  const int row = static_cast<int>(threadIdx.x) / 16 * kProductEach,
            column = static_cast<int>(threadIdx.x) % 16 * kProductEach;
  Acc sum[kProductEach][kProductEach] = {};
  for (int64_t depth = 0; depth < a.k; depth += kProductDepth) {
    load_tile(left_matrix, a.a_row, a.a_column, top, a.m, depth, a.k, room, 0);
    load_tile(right_matrix, a.b_column, a.b_row, left, a.n, depth, a.k, room, kOffsetB);
    __syncthreads();
    const int end = a.k - depth < kProductDepth ? static_cast<int>(a.k - depth) : kProductDepth;
    for (int x = 0; x < end; ++x) {
      Acc from_a[kProductEach], from_b[kProductEach];
      for (int i = 0; i < kProductEach; ++i) {
        from_a[i] = room[x * kProductRow + row + i];
        from_b[i] = room[kOffsetB + x * kProductRow + column + i];
      }
      for (int i = 0; i < kProductEach; ++i)
        for (int j = 0; j < kProductEach; ++j)
          // A product that is no sum keeps the sign of its zeros.
          sum[i][j] = a.k == 1 ? from_a[i] * from_b[j] : multiply_add<T>(from_a[i], from_b[j], sum[i][j]);
    }
    __syncthreads();
  }
  T* c = static_cast<T*>(a.c) + matrix * a.c_step;
  for (int i = 0; i < kProductEach; ++i)
    for (int j = 0; j < kProductEach; ++j)
      if (top + row + i < a.m && left + column + j < a.n)
        store_product<T>(a, c + (top + row + i) * a.c_row + left + column + j, sum[i][j]);
}

template <class T, class Room>
__device__ void product(const ProductArguments& a, Room& room) {
  const int64_t tiles = a.batch * a.tiles_down * a.tiles_across;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) product_tile<T>(a, tile, room);
}

}  // namespace hybridnet::device
