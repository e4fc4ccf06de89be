// Rows rounded to the nearest of 256 values, as kernels::quantize_rows does it, but as floats.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/device/kernel.cuh"
#include "kernels/device/rounded_rows_arguments.h"

namespace hybridnet::device {

// Joins a number of each of 256 threads; every thread of the block calls it.
template <class Room, class Join>
inline __device__ float joined(Room& room, float mine, const Join& join) {
  const int thread = static_cast<int>(threadIdx.x);
  room[thread] = mine;
  for (int width = 128; width > 0; width /= 2) {
    __syncthreads();
    if (thread < width) room[thread] = join(room[thread], room[thread + width]);
  }
  __syncthreads();
  const float all = room[0];
  __syncthreads();
  return all;
}

// A block of 256 threads for each row; room: a float for each thread.
template <class Room>
__device__ void round_rows(const RoundedRowsArguments& a, Room& room) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t r = blockIdx.x; r < a.count; r += gridDim.x) {
    const float* row = a.rows + r * a.depth;
    float low = 0, high = 0, unbounded = 0;  // x - x is NaN unless x is finite
    for (int64_t k = thread; k < a.depth; k += 256) {
      const float x = row[k];
      low = x < low ? x : low;
      high = x > high ? x : high;
      unbounded = unbounded + (x - x);
    }
    low = joined(room, low, [](float x, float y) { return x < y ? x : y; });
    high = joined(room, high, [](float x, float y) { return x > y ? x : y; });
    unbounded = joined(room, unbounded, [](float x, float y) { return x + y; });
    const float reach = high / 255.0f - low / 255.0f, least = std::numeric_limits<float>::min();
    const float step = reach > least ? reach : least, inverse = 1.0f / step;
    const float zero = std::rint(-low * inverse);
    for (int64_t k = thread; k < a.depth; k += 256) {
      const float byte = std::rint(row[k] * inverse) + zero;
      const float kept = byte < 0.0f ? 0.0f : byte > 255.0f ? 255.0f : byte;
      a.out[r * a.depth + k] = unbounded == 0.0f ? (kept - zero) * step : unbounded;
    }
  }
}

}  // namespace hybridnet::device
