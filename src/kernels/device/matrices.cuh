// Parts of matrices, triangular systems, products of columns, search in vectors, and the comparison of two arrays.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/matrix_arguments.h"

namespace hybridnet::device {

// The place in the vector of element (row, column) of a matrix, or -1. The elements of a row are consecutive.
inline __device__ int64_t place_in_part(const PartArguments& a, int64_t row, int64_t column) {
  const int64_t at = column - row - a.offset;  // the distance from the diagonal
  if (a.band) return at == 0 ? row + (a.offset < 0 ? a.offset : 0) : -1;
  if (a.lower) {                          // offset <= 0
    const int64_t full = row + a.offset;  // rows before this one that have elements
    return at <= 0 && full >= 0 ? full * (full + 1) / 2 + column : -1;
  }
  return at >= 0 ? row * (a.n - a.offset) - row * (row - 1) / 2 + at : -1;  // offset >= 0
}

// T: an unsigned integer of an element's size. kMakes: writes matrices, else vectors.
template <class T, bool kMakes>
__device__ inline void copy_part(const PartArguments& a) {
  for (int64_t i = first(); i < a.count * a.n * a.n; i += step()) {
    const int64_t column = i % a.n, row = i / a.n % a.n, place = place_in_part(a, row, column);
    const int64_t at = i / a.n / a.n * a.length + place;
    if (kMakes)
      static_cast<T*>(a.out)[i] = place < 0 ? T(0) : static_cast<const T*>(a.in)[at];
    else if (place >= 0)
      static_cast<T*>(a.out)[at] = static_cast<const T*>(a.in)[i];
  }
}

template <class T>
__device__ inline void sum_log_diagonals(const PartArguments& a) {
  using A = accumulator_t<T>;
  for (int64_t i = first(); i < a.count; i += step()) {
    const T* const matrix = static_cast<const T*>(a.in) + i * a.n * a.n;
    A sum = 0;
    for (int64_t k = 0; k < a.n; ++k) sum += std::log(convert<A>(matrix[k * (a.n + 1)]));
    static_cast<T*>(a.out)[i] = convert<T>(sum);
  }
}

template <class T>
__device__ inline void keep_triangle(const TriangleArguments& a) {
  using A = accumulator_t<T>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t column = i % a.columns, row = i / a.columns % a.rows;
    const bool kept = a.lower ? column < row : column > row;
    const A scale = static_cast<A>(column == row ? a.diagonal : kept ? a.factor : 0.0);
    const A value = scale == A(0) ? A(0) : convert<A>(static_cast<const T*>(a.in)[i]) * scale;
    static_cast<T*>(a.out)[i] = convert<T>(value);
  }
}

// A thread for each vector: substitution, from the first entry if the triangle (transposed or not) is a lower one.
// Every entry is written before later ones read it.
template <class T>
__device__ inline void solve_triangular(const SolveArguments& a) {
  const int64_t row = a.transpose ? 1 : a.n, column = a.transpose ? a.n : 1;
  const bool forward = (a.lower != 0) != (a.transpose != 0);
  for (int64_t i = first(); i < a.count * a.vectors; i += step()) {
    const T* const triangle = static_cast<const T*>(a.triangles) + i / a.vectors * a.n * a.n;
    const int64_t begin = i / a.vectors * a.step + i % a.vectors * a.vector_step;
    const T* const b = static_cast<const T*>(a.in) + begin;
    T* const x = static_cast<T*>(a.out) + begin;
    for (int64_t done = 0; done < a.n; ++done) {
      const int64_t r = forward ? done : a.n - 1 - done;
      T sum = b[r * a.entry_step] * static_cast<T>(a.alpha);
      for (int64_t k = 0; k < done; ++k) {
        const int64_t c = forward ? k : a.n - 1 - k;
        sum = sum - triangle[r * row + c * column] * x[c * a.entry_step];
      }
      x[r * a.entry_step] = sum / triangle[r * row + r * column];
    }
  }
}

// out[row] = in[row / divisor % size], or that times out[row].
template <class T>
__device__ inline void khatri_rao(const KhatriRaoArguments& a) {
  using A = std::conditional_t<is_half<T>, float, wrapping_t<T>>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const T factor = static_cast<const T*>(a.in)[i / a.columns / a.divisor % a.size * a.columns + i % a.columns];
    T& out = static_cast<T*>(a.out)[i];
    out = a.first ? factor : convert<T>(static_cast<A>(convert<A>(out) * convert<A>(factor)));
  }
}

// Whether a precedes b. NaN is the last value and equal to itself.
template <class T>
inline __device__ bool precedes(T a, T b) {
  return a < b || (a == a && b != b);
}

// The place before equal elements, or behind them.
template <class T>
__device__ inline void search_sorted(const SearchArguments& a) {
  using N = std::conditional_t<is_half<T>, float, T>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const N value = convert<N>(static_cast<const T*>(a.values)[i]);
    int64_t low = 0, high = a.count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      const N other = convert<N>(static_cast<const T*>(a.sorted)[middle]);
      if (a.right ? !precedes(value, other) : precedes(other, value))
        low = middle + 1;
      else
        high = middle;
    }
    a.out[i] = low;
  }
}

template <class T>
__device__ inline void move_means(const MovingMeanArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const double old = convert<double>(static_cast<const T*>(a.before)[i]);
    static_cast<T*>(a.after)[i] = convert<T>(a.momentum * old + (1 - a.momentum) * a.mean[i]);
  }
}

template <class T>
__device__ inline void all_close(const CloseArguments& a, HN_SHARED_POINTER(int) room) {
  bool close = true;
  for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x) {
    const double x = convert<double>(static_cast<const T*>(a.a)[i]), y = convert<double>(static_cast<const T*>(a.b)[i]);
    if (x != x || y != y)
      close = close && a.equal_nan && x != x && y != y;
    else
      close = close && (x == y || std::fabs(x - y) <= a.atol + a.rtol * std::fabs(y));
  }
  room[threadIdx.x] = close ? 1 : 0;
  __syncthreads();
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  for (unsigned k = 0; k < blockDim.x; ++k) {
    const int other = room[k];
    close = close && other != 0;
  }
  *a.out = close ? 1 : 0;
}

}  // namespace hybridnet::device
